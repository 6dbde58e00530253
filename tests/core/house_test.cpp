// The order of the house: a folder includes only folders below it, and SimGrid stands behind one file.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "paths.hpp"

namespace fs = std::filesystem;

TEST_CASE("includes point down the house, and one file knows SimGrid") {
  const std::vector<std::string> order{"core",    "hardware", "workload", "topology", "network",
                                       "step",    "power",    "run",      "facility", "hall",
                                       "foreign", "study",    "report",   "mlperf",   "cli"};
  std::map<std::string, size_t> level;
  for (size_t i = 0; i < order.size(); ++i) level[order[i]] = i;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / "sim")) {
    if (!entry.is_regular_file()) continue;
    const std::string folder = entry.path().parent_path().filename().string();
    CAPTURE(entry.path().string());
    REQUIRE(level.count(folder) == 1);
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("#include <simgrid", 0) == 0) CHECK(entry.path().filename() == "engine_module.cpp");
      if (line.rfind("#include \"", 0) != 0) continue;
      const std::string path = line.substr(10, line.find('/') - 10);
      CAPTURE(line);
      REQUIRE(level.count(path) == 1);
      CHECK(level[path] <= level[folder]);
    }
  }
}

TEST_CASE("headers that take long to compile are in no header of the house") {
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / "sim")) {
    if (entry.path().extension() != ".hpp") continue;
    CAPTURE(entry.path().string());
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      for (const char* slow : {"nlohmann/json.hpp", "boost/graph", "boost/process", "boost/geometry"})
        CHECK(line.rfind("#include <" + std::string(slow), 0) != 0);
  }
}

// A part stands in one file and in one line of a table: nobody else names it. What a toy needs beside its file, tests
// of the rooms show (topology/kinds_test.cpp, network/registry_test.cpp, report/study_figures_test.cpp); accelerators
// and precisions are data alone (command_line/run_test.cpp).
TEST_CASE("a collective, a kind of fabric and a format of another tool are known to two files each") {
  const std::map<std::string, std::vector<std::string>> parts{
      {"network", {"kTree", "kHierarchical", "kNvls", "kSharp"}},
      {"topology", {"scalable_units_kind", "fat_tree_kind", "torus_kind", "dragonfly_kind", "graph_kind"}},
      {"foreign",
       {"nccl_topology_kind", "slurm_topology_kind", "astra_network_kind", "cables_kind", "nccl_tests_kind",
        "prometheus_kind", "power_csv_kind"}}};
  std::map<std::string, std::set<std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / "sim")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto in_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    for (auto begin = text.begin(), end = begin; begin != text.end(); begin = end) {
      begin = std::find_if(end, text.end(), in_word);
      end = std::find_if_not(begin, text.end(), in_word);
      const std::string folder = entry.path().parent_path().filename().string();
      files[folder + "/" + std::string(begin, end)].insert(entry.path().string());
    }
  }
  for (const auto& [room, names] : parts)
    for (const std::string& name : names) {
      CAPTURE(room, name);
      CHECK(files[room + "/" + name].size() == 2);
    }
}

// What BF16 and FP8 recipes do is code; any other precision is a line of a table or an accelerator's data.
TEST_CASE("precisions but those of recipes are named by their table alone") {
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / "sim")) {
    if (!entry.is_regular_file() || entry.path().stem() == "precision") continue;
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    CAPTURE(entry.path().string());
    for (const char* name : {"Precision::mxfp8", "Precision::nvfp4", "fp6_toy"})
      CHECK(text.find(name) == std::string::npos);
  }
}

namespace {

size_t indentation(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// Lines of the longest function or block at the columns where functions of a file and of its classes stand, and where
// it begins; what clang-format has laid out ends with a brace of its own.
std::pair<size_t, size_t> longest_function(const std::vector<std::string>& lines) {
  std::pair<size_t, size_t> longest{0, 0};
  for (size_t end = 1; end < lines.size(); ++end) {
    const size_t column = indentation(lines[end]);
    if (column > 2 || lines[end].substr(column) != "}") continue;
    size_t begin = end;
    const auto opens = [&](const std::string& line) {
      const std::string text = line.substr(indentation(line));
      return !text.empty() && indentation(line) <= column && text.front() != '}' && text.front() != '#' &&
             text.rfind("//", 0) != 0 && text.back() != ':';
    };
    do --begin;
    while (begin > 0 && !opens(lines[begin]));
    if (end - begin + 1 > longest.first) longest = {end - begin + 1, begin + 1};
  }
  return longest;
}

}  // namespace

TEST_CASE("no file is longer than 400 lines, and no function longer than 80") {
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / "sim")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    const auto [length, begin] = longest_function(lines);
    CAPTURE(entry.path().string(), begin, length);
    CHECK(lines.size() <= 400);
    CHECK(length <= 80);
  }
}

// What was measured, and on what, is data of suites and profiles; calibrate reads it.
TEST_CASE("no source file but the reader of a laboratory knows its rows") {
  std::set<std::string> phases;
  for (const char* lab : {"gpu_lab", "gpu_lab_2"}) {
    std::ifstream in(fs::path(source_folder()) / "reference" / lab / "power.csv");
    std::string line;
    std::getline(in, line);
    std::vector<std::string> head;
    std::stringstream names(line);
    for (std::string cell; std::getline(names, cell, ',');) head.push_back(cell);
    const auto column = std::find(head.begin(), head.end(), "phase") - head.begin();
    REQUIRE(column < static_cast<std::ptrdiff_t>(head.size()));
    while (std::getline(in, line)) {
      std::stringstream cells(line);
      std::string cell;
      for (std::ptrdiff_t i = 0; i <= column; ++i) std::getline(cells, cell, ',');
      if (cell.find('_') != std::string::npos) phases.insert('"' + cell + '"');
    }
  }
  CHECK(phases.size() > 20);
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / "sim")) {
    if (!entry.is_regular_file() || entry.path().filename() == "calibration.cpp") continue;
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    CAPTURE(entry.path().string());
    for (const std::string& phase : phases) {
      CAPTURE(phase);
      CHECK(text.find(phase) == std::string::npos);
    }
  }
}

TEST_CASE("no two headers give one name to two types: their constructors would be one to the linker") {
  std::map<std::string, std::set<std::string>> places;  // of namespace and name
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / "sim")) {
    if (entry.path().extension() != ".hpp") continue;
    std::ifstream in(entry.path());
    std::string space;
    const std::regex begins("^(struct|class|enum class) (\\w+)( final)?( :[^;]*)? \\{.*"),
        opens("^namespace ([\\w:]+) \\{$");
    std::smatch found;
    for (std::string line; std::getline(in, line);) {
      if (std::regex_match(line, found, opens)) space = found[1];
      if (line.rfind("}  // namespace", 0) == 0) space = "tw";
      if (std::regex_match(line, found, begins)) places[space + "::" + found[2].str()].insert(entry.path().string());
    }
  }
  CHECK(places.size() > 200);
  for (const auto& [name, files] : places) {
    CAPTURE(name, *files.begin());
    CHECK(files.size() == 1);
  }
}
