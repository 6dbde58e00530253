// Documentation: its reference pages are those of the program, every command that it shows works, every link leads
// somewhere.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "core/files.hpp"
#include "paths.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path kSource = source_folder();

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("trainwatt_docs_" + std::to_string(::getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

std::vector<fs::path> pages() {
  std::vector<fs::path> list{kSource / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "docs"))
    if (entry.path().extension() == ".md") list.push_back(entry.path());
  std::sort(list.begin() + 1, list.end());
  return list;
}

// What a page tells its reader to do, in order: files to write (```json NAME, ```python NAME: run at once where python3
// has pandas) and commands. A line <!-- slow --> before a block leaves its commands to TRAINWATT_SLOW_DOCS=1.
struct Step {
  std::string file, text;
};
bool ends_with_py(const std::string& file) {
  return file.size() > 3 && file.compare(file.size() - 3, 3, ".py") == 0;
}
std::vector<Step> steps_of(const std::string& page) {
  const bool all = std::getenv("TRAINWATT_SLOW_DOCS") != nullptr;
  std::vector<Step> steps;
  std::istringstream lines(page);
  bool fenced = false, slow = false;
  std::string file;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("<!-- slow -->", 0) == 0) slow = true;
    if (line.rfind("```", 0) == 0) {
      fenced = !fenced;
      if (!fenced) slow = false;
      const bool script = line.rfind("```python ", 0) == 0,
                 named = fenced && (script || line.rfind("```json ", 0) == 0);
      file = named ? line.substr(line.find(' ') + 1) : "";
      if (!fenced && !steps.empty() && ends_with_py(steps.back().file))
        steps.push_back({"", "/usr/bin/python3 " + steps.back().file});
      if (named) steps.push_back({file, ""});
      continue;
    }
    if (fenced && !file.empty()) {
      steps.back().text += line + "\n";
      continue;
    }
    if (!fenced && line.rfind("    ", 0) != 0) continue;
    std::string command = fenced ? line : line.substr(4);
    if (command.rfind("trainwatt ", 0) != 0) continue;
    while (!command.empty() && command.back() == '\\') {
      command.pop_back();
      if (!std::getline(lines, line)) break;
      command += line;
    }
    // Two blanks and words after them say what a command is for.
    if (const size_t remark = command.find("   "); remark != std::string::npos && !fenced)
      command = command.substr(0, remark);
    if (!slow || all) steps.push_back({"", command});
  }
  return steps;
}

int shell(const std::string& command, const fs::path& folder, const fs::path& log) {
  const std::string line = "cd '" + folder.string() + "' && PATH='" + program_folder() + "':\"$PATH\" && " + command +
                           " >'" + log.string() + "' 2>&1";
  const int status = std::system(line.c_str());  // NOLINT: a shell is what the reader uses
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

}  // namespace

TEST_CASE("the reference pages in docs/reference are those of this program") {
  const Folder folder;
  REQUIRE(shell("trainwatt schema --markdown new", folder.path, folder.path / "log") == 0);
  for (const char* name : {"inputs.md", "outputs.md", "commands.md", "choices.md"}) {
    INFO(name << ": run build/release/bin/trainwatt schema --markdown docs/reference");
    CHECK(tw::read_file((folder.path / "new" / name).string()) ==
          tw::read_file((kSource / "docs/reference" / name).string()));
  }
}

TEST_CASE("every command of the documentation works") {
  size_t commands = 0;
  const Folder probe;
  const bool pandas = shell("/usr/bin/python3 -c 'import pandas'", probe.path, probe.path / "log") == 0;
  for (const fs::path& page : pages()) {
    if (page.parent_path().filename() == "reference") continue;  // examples of the help, with names of the reader's own
    const Folder folder;
    for (const char* data : {"scenarios", "topologies", "models", "reference", "tools", "tests"})
      fs::create_directory_symlink(kSource / data, folder.path / data);
    for (const Step& step : steps_of(tw::read_file(page.string()))) {
      if (!step.file.empty()) {
        tw::write_file((folder.path / step.file).string(), step.text);
        continue;
      }
      if (step.text.rfind("/usr/bin/python3 ", 0) == 0 && !pandas) {
        WARN(page.filename().string() << ": skipped, python3-pandas is not installed: " << step.text);
        continue;
      }
      ++commands;
      const fs::path log = folder.path / "log.txt";
      const int code = shell(step.text, folder.path, log);
      INFO(page.filename().string() << ": " << step.text << "\n" << tw::read_file(log.string()));
      CHECK(code == 0);
    }
  }
  CHECK(commands > 20);
}

// Speed that is told was measured by a script that anybody can run, as whole processes; peers' whole processes stand
// beside ours, with the machine they ran on.
TEST_CASE("the table of speed is that of bench/processes, case by case, and says how peers were measured") {
  const std::string told = tw::read_file((kSource / "reference/speed.md").string()),
                    script = tw::read_file((kSource / "bench/processes").string());
  const size_t begin = told.find("<!-- processes -->"), end = told.find("<!-- end of processes -->");
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  std::vector<std::string> cases;
  std::istringstream lines(told.substr(begin, end - begin));
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("| ", 0) == 0 && line.rfind("| case", 0) != 0)
      cases.push_back(line.substr(2, line.find(" |", 2) - 2));
  size_t at = script.find("CASES = ["), listed = 0;
  const size_t last = script.find("\n]\n", at);
  REQUIRE(last != std::string::npos);
  for (const std::string& name : cases) {
    CAPTURE(name);
    at = script.find('"' + name + '"', at);
    REQUIRE(at < last);
  }
  for (size_t i = script.find("CASES = ["); (i = script.find("\n    (\"", i + 1)) < last;) ++listed;
  CHECK(cases.size() == listed);
  const size_t peers = told.find("## Beside others");
  REQUIRE(peers != std::string::npos);
  for (const char* said :
       {"whole process", "whole processes", "another machine", "which power of ten, not which factor"})
    CHECK(told.find(said, peers) != std::string::npos);
}

TEST_CASE("every link of the documentation leads to a file, and docs/index.md to every page") {
  const std::string index = tw::read_file((kSource / "docs/index.md").string());
  for (const fs::path& page : pages()) {
    const std::string text = tw::read_file(page.string());
    for (size_t at = 0; (at = text.find("](", at)) != std::string::npos;) {
      at += 2;
      std::string target = text.substr(at, text.find(')', at) - at);
      if (target.empty() || target.front() == '#' || target.find("://") != std::string::npos) continue;
      target = target.substr(0, target.find('#'));
      INFO(page << " -> " << target);
      CHECK(fs::exists(page.parent_path() / target));
    }
    if (page.filename() == "README.md" || page.filename() == "index.md") continue;
    INFO("docs/index.md does not link " << page);
    CHECK(index.find("(" + fs::relative(page, kSource / "docs").string()) != std::string::npos);
  }
  CHECK(tw::read_file((kSource / "README.md").string()).find("(docs/index.md)") != std::string::npos);
}
