// The order of the house: a folder includes only folders below it, and SimGrid stands behind one file.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "paths.hpp"

namespace fs = std::filesystem;

TEST_CASE("includes point down the house, and one file knows SimGrid") {
  const std::vector<std::string> order{"core", "hardware", "workload", "topology", "network", "step",   "power", "run",
                                       "facility", "hall", "foreign", "study", "report", "mlperf", "cli"};
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
