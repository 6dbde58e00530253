// trainwatt report: the pages of what run, sweep and validate leave.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/csv.hpp"
#include "paths.hpp"
#include "program.hpp"

using namespace program;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

struct Number {
  std::string key, value;
};

std::string unescaped(std::string text) {
  for (const auto& [from, to] : {std::pair{"&quot;", "\""}, {"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; ++at)
      text.replace(at, std::string(from).size(), to);
  return text;
}

// All numbers of a page: where they stand in the results and their exact value.
std::vector<Number> numbers_of(const std::string& page) {
  std::vector<Number> list;
  const std::string name = "data-key=\"", value = "data-value=\"";
  for (size_t at = 0; (at = page.find(name, at)) != std::string::npos;) {
    at += name.size();
    const size_t end = page.find('"', at), from = page.find(value, end) + value.size();
    list.push_back({unescaped(page.substr(at, end - at)), unescaped(page.substr(from, page.find('"', from) - from))});
  }
  return list;
}

void check_self_contained(const std::string& page) {
  CHECK(page.rfind("<!DOCTYPE html>", 0) == 0);
  // Names of XML dialects are no addresses; there is no other.
  std::string rest = page;
  for (const char* known : {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"})
    for (size_t at = 0; (at = rest.find(known, at)) != std::string::npos;) rest.erase(at, std::string(known).size());
  CHECK(rest.find("://") == std::string::npos);
  CHECK(rest.find("src=") == std::string::npos);
  CHECK(rest.find("@import") == std::string::npos);
  // Every reference inside the page is met, and no name comes twice.
  std::vector<std::string> ids;
  for (const char* quote : {"\"", "'"})
    for (size_t at = 0; (at = page.find(std::string(" id=") + quote, at)) != std::string::npos;) {
      at += 5;
      ids.push_back(page.substr(at, page.find(quote, at) - at));
    }
  std::sort(ids.begin(), ids.end());
  CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
  for (size_t at = 0; (at = page.find("href='#", at)) != std::string::npos;) {
    at += 7;
    const std::string target = page.substr(at, page.find('\'', at) - at);
    CHECK(std::binary_search(ids.begin(), ids.end(), target));
  }
}

}  // namespace

TEST_CASE("report: the page of a run has the numbers of its result JSON") {
  const Folder folder;
  REQUIRE(run({"run", k8, k9, "--set", "/network_rule=by_load", "-o", folder / "out", "-q"}).code == 0);
  const Run r = run({"report", folder / "out", "-o", folder / "page.html"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  const std::string page = tw::read_file(folder / "page.html");
  check_self_contained(page);
  const ordered_json results = ordered_json::parse(tw::read_file(folder / "out/result.json"));
  const auto numbers = numbers_of(page);
  CHECK(numbers.size() > 200);
  for (const Number& n : numbers) {
    INFO(n.key);
    REQUIRE(results.contains(ordered_json::json_pointer(n.key)));
    CHECK(results[ordered_json::json_pointer(n.key)].dump() == n.value);
  }
  CHECK(holds(page,
              "trainwatt run scenarios/smc-llama2-70b-lora-8n.json scenarios/smc-llama2-70b-lora-9n.json --set "
              "/network_rule=by_load -o out"));
  CHECK(holds(page, results[0]["inputs_sha256"].get<std::string>()));
  CHECK(holds(page, "topologies/smc-h100.json"));
  CHECK(page.find(folder / "") == std::string::npos);
  CHECK(page.find(source_folder()) == std::string::npos);
  // The same again: the same bytes.
  REQUIRE(run({"report", folder / "out", "-q"}).code == 2);  // no such option
  REQUIRE(run({"report", folder / "out"}).code == 0);
  CHECK(tw::read_file(folder / "out/report.html") == page);
}

TEST_CASE("report: the page of a study has the numbers of its table, failed points and the command") {
  const Folder folder;
  const std::string study = folder.put("s.json", R"({"name": "tp <&>", "description": "a \"test\"",
      "scenario": "scenarios/smc-llama2-70b-lora-8n.json", "axes": [{"set": {"/plan/tp": [4, 3, 8]}}],
      "figures": [{"x": "/plan/tp", "y": "step.time_s", "kind": "scaling"}]})");
  run({"sweep", study, "-o", folder / "out", "-q"});
  REQUIRE(run({"report", folder / "out", "-o", folder / "page.html"}).code == 0);
  const std::string page = tw::read_file(folder / "page.html");
  check_self_contained(page);
  const auto table = tw::CsvTable::load(folder / "out/sweep.csv");
  const auto numbers = numbers_of(page);
  CHECK(numbers.size() > 10);
  for (const Number& n : numbers) {
    INFO(n.key);
    const size_t slash = n.key.find('/');
    const std::string text = table.text(std::stoul(n.key.substr(0, slash)), n.key.substr(slash + 1));
    CHECK((text.empty() ? "null" : text) == n.value);
  }
  CHECK(holds(page, "tp &lt;&amp;&gt;"));
  CHECK(holds(page, "trainwatt sweep"));
  CHECK(holds(page, "<h2>Failed points</h2>\n<ul"));
}

TEST_CASE("report: the page of a validation keeps fitted and predicted rows apart") {
  const Folder folder;
  REQUIRE(run({"validate", "smc", "-o", folder / "out", "-q"}).code == 0);
  REQUIRE(run({"report", folder / "out", "-o", folder / "page.html"}).code == 0);
  const std::string page = tw::read_file(folder / "page.html");
  check_self_contained(page);
  const ordered_json results = ordered_json::parse(tw::read_file(folder / "out/validate.json"));
  for (const Number& n : numbers_of(page)) {
    INFO(n.key);
    CHECK(results[ordered_json::json_pointer(n.key)].dump() == n.value);
  }
  CHECK(holds(page, "Predicted rows"));
  CHECK(holds(page, "Fitted rows"));
}

TEST_CASE("report: the page of a search for plans has its numbers and its figure") {
  const Folder folder;
  REQUIRE(run({"plan", k8, "--simulate", "4", "--top", "3", "-o", folder / "out", "-q"}).code == 0);
  REQUIRE(run({"report", folder / "out", "-o", folder / "page.html"}).code == 0);
  const std::string page = tw::read_file(folder / "page.html");
  check_self_contained(page);
  const json search = json::parse(tw::read_file(folder / "out/plan.json"));
  const auto numbers = numbers_of(page);
  CHECK(numbers.size() > 10);
  for (const Number& n : numbers) {
    INFO(n.key);
    CHECK(search[json::json_pointer(n.key)].dump() == n.value);
  }
  const auto table = tw::CsvTable::load(folder / "out/plan-search.csv");
  CHECK(table.rows() >= 2);
  for (size_t row = 0; row < table.rows(); ++row) CHECK(table.value(row, "memory_bytes") > 1e9);
}

TEST_CASE("report: folders without results are refused") {
  const Folder folder;
  const Run none = run({"report", folder / "nowhere"});
  CHECK(none.code == 2);
  CHECK(holds(none.err, "is no folder"));
  const Run empty = run({"report", folder / ""});
  CHECK(empty.code == 2);
  CHECK(holds(empty.err, "holds no results"));
  folder.put("result.json", "{");
  CHECK(run({"report", folder / ""}).code == 2);
  CHECK(!fs::exists(folder / "report.html"));
}
