// What people see on a terminal: help that fits 80 columns.
#include <sstream>

#include "program.hpp"

using namespace program;

TEST_CASE("help keeps to 80 columns, wrapped at words") {
  for (const char* command : {"", "run", "check", "validate", "topology", "collective", "timeline", "calibrate",
                              "sweep", "merge", "plan", "compare", "report", "import", "read", "schema"}) {
    std::vector<std::string> words{"--help"};
    if (*command != '\0') words.insert(words.begin(), command);
    const Run r = run(words);
    REQUIRE(r.code == 0);
    std::istringstream lines(r.out);
    for (std::string line; std::getline(lines, line);) {
      INFO(command << ": " << line);
      CHECK(line.size() <= 80);
    }
    CHECK(r.out.find("\x1b[") == std::string::npos);  // no colour where nobody looks
  }
}
