// Studies as a user runs them: killed, resumed, in shards, on a full disk, two at once.
#include <SQLiteCpp/SQLiteCpp.h>
#include <sys/mount.h>

#include <random>

#include "paths.hpp"
#include "program.hpp"

using namespace program;

namespace {

std::string study_of(const Folder& f, const std::string& name, const std::string& more = "") {
  return f.put(name, R"({"name": "caps", "scenario": ")" + k8 +
                         R"(", "axes": [{"set": {"/cluster/node/accelerator/board_limit":
      {"from": "400 W", "to": "700 W", "step": "100 W"}}}, {"set": {"/site/pue": [1.1, 1.2, 1.3, 1.4]}}])" +
                         more + "}");
}

// Starts a sweep and kills it, with all that it has, after so many milliseconds.
void killed_sweep(const std::string& study, const std::string& folder, int after_ms) {
  const std::string program = program_folder() + "/trainwatt";
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, 1);
    ::dup2(null, 2);
    if (::chdir(source_folder().c_str()) != 0) ::_exit(99);
    ::execl(program.c_str(), program.c_str(), "sweep", study.c_str(), "-o", folder.c_str(), "--resume", nullptr);
    ::_exit(98);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace

TEST_CASE("sweep: killed ten times at random moments and resumed, the table equals an undisturbed one byte for byte") {
  const Folder f;
  const std::string study = study_of(f, "s.json");
  const Run whole = run({"sweep", study, "-o", f / "whole", "-q"});
  REQUIRE(whole.code == 0);
  std::mt19937 random(7);
  for (int i = 0; i < 10; ++i) killed_sweep(study, f / "killed", static_cast<int>(random() % 300));
  const Run last = run({"sweep", study, "-o", f / "killed", "--resume"});
  REQUIRE(last.code == 0);
  CHECK(tw::read_file(f / "killed/sweep.csv") == tw::read_file(f / "whole/sweep.csv"));
  CHECK(tw::read_file(f / "killed/table.txt") == tw::read_file(f / "whole/table.txt"));
  const Run again = run({"sweep", study, "-o", f / "killed", "--resume"});
  CHECK(holds(again.err, "16 of 16 points were finished before"));
  CHECK(std::distance(fs::directory_iterator(f / "killed"), {}) == 4);  // no log, lock or partial file stays behind
}

TEST_CASE("sweep: shards merged equal the whole; a part that is missing can be filled in") {
  const Folder f;
  const std::string study = study_of(f, "s.json", R"(, "seeds": [1, 2])");
  REQUIRE(run({"sweep", study, "-o", f / "whole", "-q"}).code == 0);
  for (const std::string k : {"1", "2", "3"})
    REQUIRE(run({"sweep", study, "-o", f / ("part" + k), "--shard", k + "/3", "-q"}).code == 0);
  REQUIRE(run({"merge", f / "part1", f / "part2", f / "part3", "-o", f / "all"}).code == 0);
  CHECK(tw::read_file(f / "all/sweep.csv") == tw::read_file(f / "whole/sweep.csv"));
  const Run part = run({"merge", f / "part1", f / "part3", "-o", f / "some"});
  CHECK(part.code == 0);
  CHECK(holds(part.err, "11 points of the study are in none of the folders"));
  REQUIRE(run({"sweep", study, "-o", f / "some", "--resume", "-q"}).code == 0);
  CHECK(tw::read_file(f / "some/sweep.csv") == tw::read_file(f / "whole/sweep.csv"));
  CHECK(holds(run({"merge", f / "part1", f / "nowhere", "-o", f / "x"}).err, "holds no sweep.sqlite"));
  CHECK(run({"sweep", study, "-o", f / "y", "--shard", "4/3"}).code == 2);
}

TEST_CASE("sweep: one study a folder, also while it runs") {
  const Folder f;
  const std::string study = study_of(f, "s.json"), other = study_of(f, "o.json", R"(, "runs": 2)");
  REQUIRE(run({"sweep", study, "-o", f / "out", "-q"}).code == 0);
  const std::string before = tw::read_file(f / "out/sweep.sqlite");
  const Run second = run({"sweep", other, "-o", f / "out", "--resume"});
  CHECK(second.code == 2);
  CHECK(holds(second.err, "another study: runs is 2, was 0"));
  const Run same = run({"sweep", study, "-o", f / "out"});
  CHECK(same.code == 2);
  CHECK(holds(same.err, "--resume to go on"));
  CHECK(run({"sweep", other, "-o", f / "out", "--overwrite", "-q"}).code == 0);
}

TEST_CASE("sweep: a damaged store is bad input to --resume and merge, said in one line, and --overwrite mends it") {
  const Folder f;
  const std::string study = study_of(f, "s.json"), file = f / "out/sweep.sqlite";
  REQUIRE(run({"sweep", study, "-o", f / "out", "-q"}).code == 0);
  const std::string table = tw::read_file(f / "out/sweep.csv"), good = tw::read_file(file);
  const auto refused = [&] {
    for (const auto& words : {std::vector<std::string>{"sweep", study, "-o", f / "out", "--resume"},
                              std::vector<std::string>{"merge", f / "out", "-o", f / "all", "--overwrite"}}) {
      const Run r = run(words);
      INFO(words[0] << ": " << r.err);
      CHECK(r.code == 2);
      CHECK(r.error_lines() == 1);
      CHECK((holds(r.err, "damaged") || holds(r.err, "holds no results of a sweep")));
    }
  };
  std::string noise = good;
  for (size_t i = 4096; i < noise.size(); i += 7) noise[i] = static_cast<char>(i * 31);
  for (const std::string& bad : {std::string("no database"), good.substr(0, 100), good.substr(0, 6000), noise}) {
    tw::write_file(file, bad);
    refused();
  }
  for (const char* change :
       {"UPDATE points SET result = 'x'", "UPDATE points SET result = NULL", "UPDATE points SET result = '[1, 2]'",
        "UPDATE points SET inputs = '{'", "UPDATE study SET value = '-' WHERE key = 'points'", "DROP TABLE points"}) {
    tw::write_file(file, good);
    SQLite::Database(file, SQLite::OPEN_READWRITE).exec(change);
    CAPTURE(change);
    refused();
  }
  REQUIRE(run({"sweep", study, "-o", f / "out", "--overwrite", "-q"}).code == 0);
  CHECK(tw::read_file(f / "out/sweep.csv") == table);
}

TEST_CASE("sweep: points that all fail fail the study; a typing error is refused before anything is written") {
  const Folder f;
  const std::string all =
      f.put("a.json", R"({"name": "a", "scenario": ")" + k8 + R"(", "axes": [{"set": {"/plan/tp": [3, 5]}}]})");
  CHECK(run({"sweep", all, "-o", f / "a"}).code == 2);
  const std::string typo =
      f.put("t.json", R"({"name": "a", "scenario": ")" + k8 + R"(", "axes": [{"set": {"/plan/tpp": [3, 5]}}]})");
  const Run r = run({"sweep", typo, "-o", f / "t"});
  CHECK(r.code == 2);
  CHECK(r.error_lines() == 1);
  CHECK(holds(r.err, "/axes/0/set/~1plan~1tpp: \"tpp\" names nothing; did you mean \"tp\"?"));
  CHECK(!fs::exists(f / "t"));
}

TEST_CASE("sweep: a full disk is said, finished points are kept, and the study goes on when there is room") {
  const Folder f;
  fs::create_directories(f / "disk");
  if (::mount("tmpfs", (f / "disk").c_str(), "tmpfs", 0, "size=160k") != 0) {
    WARN("no right to mount a small file system: not tested here");
    return;
  }
  const std::string study = study_of(f, "s.json");
  const Run full = run({"sweep", study, "-o", f / "disk/out"});
  CHECK(full.code == 2);
  CHECK(holds(full.err, "finished points are kept"));
  CHECK(::mount("tmpfs", (f / "disk").c_str(), "tmpfs", MS_REMOUNT, "size=20m") == 0);
  const Run more = run({"sweep", study, "-o", f / "disk/out", "--resume"});
  CHECK(more.code == 0);
  CHECK(holds(more.err, "points were finished before"));
  REQUIRE(run({"sweep", study, "-o", f / "whole", "-q"}).code == 0);
  CHECK(tw::read_file(f / "disk/out/sweep.csv") == tw::read_file(f / "whole/sweep.csv"));
  ::umount((f / "disk").c_str());
}

TEST_CASE("plan: a table, JSON, and a scenario that runs; bad input is refused") {
  const Folder f;
  const Run r = run({"plan", k1, "--json", f / "plan.json", "--save", f / "best.json", "--simulate", "8"});
  REQUIRE(r.code == 0);
  CHECK(holds(r.out, "plans considered"));
  CHECK(holds(r.out, "Why it wins"));
  CHECK(holds(r.out, "What binds it"));
  CHECK(holds(r.out, "the scenario's own"));
  CHECK(holds(tw::read_file(f / "plan.json"), "\"considered\""));
  const Run saved = run({"run", f / "best.json", "--json", "-"});
  CHECK(saved.code == 0);
  const auto refused = [&](std::vector<std::string> more) {
    std::vector<std::string> all{"plan", k1};
    all.insert(all.end(), more.begin(), more.end());
    const Run bad = run(all);
    CHECK(bad.code == 2);
    return bad.err;
  };
  CHECK(holds(refused({"--objective", "speed"}), "allowed: time, energy, cost or carbon"));
  CHECK(holds(refused({"--nodes", "8-16"}), "neither a number nor a range"));
  CHECK(holds(refused({"--nodes", "100000"}), "--nodes"));
  CHECK(holds(refused({"--deadline", "2 W"}), "wrong dimension"));
  CHECK(run({"plan", k1, "--deadline", "1 s", "--simulate", "8"}).code == 3);
  CHECK(holds(run({"plan", kUnet}).err, "nothing to plan"));
}
