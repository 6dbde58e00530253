// Numbers of shipped inputs say where they come from, and runs of benchmarks say which.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/files.hpp"
#include "paths.hpp"
#include "run/benchmark.hpp"
#include "simulated.hpp"

namespace tw {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> inputs_in(const char* folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(source_folder()) / folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool has_comment(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find('"' + key + "\":") != std::string::npos) return line.find("//") != std::string::npos;
  return false;
}

}  // namespace

TEST_CASE(
    "every number of a software profile has a source: its own words, a comment beside it, or one fit of them all") {
  for (const fs::path& file : inputs_in("models/software")) {
    const std::string text = read_file(file.string());
    const auto profile = nlohmann::json::parse(text, nullptr, true, true);
    const std::string source = profile.value("source", "");
    CAPTURE(file.filename().string());
    CHECK_FALSE(source.empty());
    if (source.rfind("fitted on ", 0) == 0) continue;
    for (const auto& [key, value] : profile.items()) {
      const bool quantity = value.is_string() && key != "name" && key != "source" && key != "use";
      if (!value.is_number() && !quantity) continue;
      CAPTURE(key);
      CHECK((source.find(key) != std::string::npos || has_comment(text, key)));
    }
  }
}

TEST_CASE("scenarios of benchmark rounds name their benchmark") {
  size_t named = 0;
  for (const fs::path& file : inputs_in("scenarios")) {
    const std::string name = file.filename().string();
    CAPTURE(name);
    if (name.rfind("mlperf-", 0) != 0 && name.rfind("smc-", 0) != 0 && name.find("-lora-") == std::string::npos)
      continue;
    const Scenario scenario = loaded("scenarios/" + name).scenario;
    CHECK(find_benchmark(scenario.benchmark) != nullptr);
    ++named;
  }
  CHECK(named > 20);
}

}  // namespace tw
