// Every row of every suite meets its bound, or misses it by no more than reference/known_gaps.json says.
#include "study/validate.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "core/document.hpp"
#include "core/files.hpp"
#include "paths.hpp"
#include "report/accuracy.hpp"

namespace tw {
namespace {

// How far a known gap may lie above the error reached before it has to be shrunk, in points (a machine's last bits, the
// order of sums and rounding to two decimals are far below).
constexpr double kSlack = 0.5;

const SuiteOutcome& suite_of(const std::vector<SuiteOutcome>& suites, const std::string& name) {
  for (const SuiteOutcome& s : suites)
    if (s.name == name) return s;
  FAIL("no suite " + name);
  return suites.front();
}

double error_of(const SuiteOutcome& suite, const std::string& id) {
  for (const RowOutcome& r : suite.rows)
    if (r.row.id == id && r.error_pct) return *r.error_pct;
  FAIL("no row " + id);
  return 0;
}

std::string text(Maybe v) {
  return v ? fmt::format("{:.6g}", *v) : std::string("nothing");
}

// Fills `seen` with the keys of known gaps that belong to something that misses its bound.
void check_suite(const SuiteOutcome& suite, std::set<std::string>& seen) {
  CAPTURE(suite.name);
  CHECK(suite.errors.empty());
  for (const RowOutcome& r : suite.rows) {
    const std::string id = suite.name + "/" + r.row.id;
    INFO(id << ": predicted " << text(r.predicted) << ", measured " << r.row.measured << ", error " << text(r.error_pct)
            << " %, bound " << text(r.row.bound_pct) << ", known gap " << text(r.known_gap_pct));
    if (!r.row.refused.empty()) {
      CHECK_FALSE(r.known_gap_pct);
      continue;
    }
    if (r.row.kind != RowKind::given) CHECK(r.error_pct);
    CHECK_FALSE(r.worse_than_known());
    if (!r.known_gap_pct || r.met() != false) continue;
    seen.insert(id);
    INFO("shrink it: trainwatt validate --gaps reference/known_gaps.json");
    CHECK(std::abs(*r.error_pct) > *r.known_gap_pct - kSlack);
  }
  for (const MeanOutcome& m : suite.means) {
    const std::string id = suite.name + "/mean/" + m.name;
    INFO(id << ": " << text(m.value) << ", bound " << text(m.bound) << ", known gap " << text(m.known));
    CHECK_FALSE(m.worse_than_known());
    if (m.known && m.met() == false) seen.insert(id);
  }
}

void check_llama31(const SuiteOutcome& suite) {
  std::map<std::string, std::pair<double, int>> groups;
  for (const RowOutcome& r : suite.rows) {
    if (r.row.kind != RowKind::predicted || r.row.quantity != "step_s" || !r.error_pct) continue;
    auto& [sum, count] = groups[r.row.id.find("FP8") != std::string::npos ? "FP8" : "BF16"];
    sum += std::abs(*r.error_pct);
    ++count;
  }
  CHECK(groups["FP8"].first / groups["FP8"].second <= 2.5);
  CHECK(groups["BF16"].first / groups["BF16"].second <= 2.5);
  // Growth of the step from 64 to 1,024 GPUs, in points: the error moves by no more than one. In FP8 it is a known gap:
  // noise that is met at every visit grows the 70B step by 3.5 % where 2.2 % were measured, the 8B step by 1.6 % where
  // 2.3 % were.
  CHECK(std::abs(error_of(suite, "70b-FP8-1024/step_s") - error_of(suite, "70b-FP8-64/step_s")) <= 1.26);
  CHECK(std::abs(error_of(suite, "70b-BF16-1024/step_s") - error_of(suite, "70b-BF16-64/step_s")) <= 1);
  for (const RowOutcome& r : suite.rows) CHECK(r.row.counted == (r.row.quantity != "days_per_1T_tokens"));
}

void check_readme(const std::vector<SuiteOutcome>& suites) {
  const std::string readme = read_file(source_folder() + "/README.md");
  const size_t head = readme.find("<!-- accuracy:"), begin = readme.find('\n', head),
               end = readme.find("<!-- end of accuracy");
  REQUIRE(head != std::string::npos);
  REQUIRE(end != std::string::npos);
  INFO("put the output of: trainwatt validate smc smc-calibrated --markdown - into README.md");
  CHECK(readme.substr(begin + 1, end - begin - 1) ==
        report::accuracy_markdown({suite_of(suites, "smc"), suite_of(suites, "smc-calibrated")}));
}

}  // namespace

// The suite of most rows is a test of its own, so that the two run beside each other.
constexpr const char* kLargest = "vtrain";

// Each scenario is simulated once, in two children at a time.
static std::vector<SuiteOutcome> checked(const std::vector<std::string>& names) {
  auto suites = validate(names, {}, 2, 300, [](size_t, size_t) {});
  CHECK(suites.size() == names.size());
  std::set<std::string> seen;
  for (const SuiteOutcome& suite : suites) check_suite(suite, seen);
  for (const auto& entry : load<KnownGaps>("reference/known_gaps.json").gaps) {
    const std::string suite = entry.first.substr(0, entry.first.find('/'));
    if ((suite == kLargest) != (names.front() == kLargest)) continue;
    INFO(entry.first << " in known_gaps.json is closed, or belongs to no row: it leaves the list");
    CHECK(seen.count(entry.first) == 1);
  }
  return suites;
}

TEST_CASE("every plan of the largest suite meets its bound, or is no worse than its known gap") {
  checked({kLargest});
}

TEST_CASE("every row of every suite meets its bound, or is no worse than its known gap") {
  std::vector<std::string> names;
  for (const std::string& name : suite_names())
    if (name != kLargest) names.push_back(name);
  const auto suites = checked(names);
  CHECK(suite_of(suites, "smc").rows.size() == 31);
  CHECK(suite_of(suites, "smc-calibrated").rows.size() == 70);
  CHECK(suite_of(suites, "mlperf-v2.0").rows.size() == 56);
  for (const RowOutcome& r : suite_of(suites, "mlperf-v2.0").rows) {
    INFO(r.row.id);
    if (r.row.kind == RowKind::fitted) CHECK(std::abs(*r.error_pct) <= 2);
  }
  check_llama31(suite_of(suites, "llama31"));
  check_readme(suites);
}

TEST_CASE("known gaps only shrink") {
  KnownGaps known;
  known.gaps = {{"toy/a", 12.0}, {"toy/b", 12.0}, {"toy/c", 12.0}, {"other/a", 3.0}, {"toy/mean/spearman", 0.7}};
  SuiteOutcome suite;
  suite.name = "toy";
  for (const auto& [id, error] : {std::pair{"a", -11.0}, {"b", 13.0}, {"c", 4.0}}) {
    RowOutcome r;
    r.row.id = id, r.row.bound_pct = 5, r.row.measured = 1;
    r.predicted = 1 + error / 100, r.error_pct = error;
    suite.rows.push_back(r);
  }
  MeanOutcome order;
  order.name = "spearman", order.value = 0.8, order.bound = 0.9, order.high = true;
  suite.means.push_back(order);
  CHECK(shrunk(known, {suite}).gaps ==
        std::map<std::string, double>{{"toy/a", 11.0}, {"toy/b", 12.0}, {"other/a", 3.0}, {"toy/mean/spearman", 0.8}});
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
