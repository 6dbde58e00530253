// Every row of every suite meets its bound, or misses it by no more than reference/known_gaps.json says.
#include "study/validate.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "core/files.hpp"
#include "paths.hpp"
#include "report/accuracy.hpp"

namespace tw {

TEST_CASE("validate: all bounds are met, or no worse than the known gaps") {
  const auto suites = validate({"smc", "smc-calibrated"}, {}, 2, 300, [](size_t, size_t) {});
  REQUIRE(suites.size() == 2);
  const auto gaps = load<KnownGaps>("reference/known_gaps.json");
  std::map<std::string, bool> used;
  for (const auto& entry : gaps.gaps) used[entry.first] = false;
  for (const SuiteOutcome& suite : suites) {
    CHECK(suite.errors.empty());
    CHECK(suite.rows.size() == (suite.name == "smc" ? 31 : 70));
    for (const RowOutcome& r : suite.rows) {
      const std::string id = suite.name + "/" + r.row.id;
      const auto text = [](Maybe v) { return v ? fmt::format("{:.6g}", *v) : std::string("nothing"); };
      INFO(id << ": predicted " << text(r.predicted) << ", measured " << r.row.measured << ", error "
              << text(r.error_pct) << " %, bound " << text(r.row.bound_pct));
      CHECK_FALSE(r.worse_than_known());
      // A gap that was closed leaves the list.
      const auto gap = used.find(id);
      if (gap != used.end()) {
        gap->second = true;
        CHECK(r.met() == false);
      }
    }
  }
  for (const auto& [id, seen] : used) {
    INFO(id << " in known_gaps.json belongs to no row");
    if (id.compare(0, 3, "smc") == 0) CHECK(seen);
  }
}

TEST_CASE("the accuracy table of the README is that of this program") {
  const auto suites = validate({"smc", "smc-calibrated"}, {}, 2, 300, [](size_t, size_t) {});
  const std::string readme = read_file(source_folder() + "/README.md");
  const size_t head = readme.find("<!-- accuracy:"), begin = readme.find('\n', head),
               end = readme.find("<!-- end of accuracy");
  REQUIRE(head != std::string::npos);
  REQUIRE(end != std::string::npos);
  INFO("put the output of: trainwatt validate smc smc-calibrated --markdown - into README.md");
  CHECK(readme.substr(begin + 1, end - begin - 1) == report::accuracy_markdown(suites));
}

TEST_CASE("scenarios and suites quote the same measurements") {
  Faults faults;
  for (const char* name : {"smc", "smc-calibrated"}) {
    const auto suite = load<Suite>(std::string("reference/suites/") + name + ".json");
    for (const SuiteCase& c : suite.cases) {
      const Scenario scenario = load_scenario(c.scenario, {}, faults).scenario;
      for (const Measured& m : scenario.reference.rows)
        for (const SuiteRow& row : c.rows) {
          if (row.quantity != m.quantity ||
              (row.quantity == "network_w" && row.rule != choice_name(*scenario.network_rule)))
            continue;
          INFO(c.scenario << " " << m.quantity);
          CHECK(row.measured == m.value);
        }
    }
  }
  CHECK(faults.empty());
}

}  // namespace tw
