// Help, versions, usage errors: what happens before any input is read.
#include "program.hpp"

using namespace program;

TEST_CASE("help and version go to stdout and end well") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"--help"}, {"-h"}, {"--version"}}) {
    const Run r = run(arguments);
    CHECK(r.code == 0);
    CHECK(r.err.empty());
    CHECK(holds(r.out, "trainwatt"));
  }
  for (const char* sub : {"run", "check", "validate", "topology", "collective", "timeline", "schema"}) {
    const Run r = run({sub, "--help"});
    INFO(sub);
    CHECK(r.code == 0);
    CHECK(holds(r.out, "Examples:\n  trainwatt " + std::string(sub)));
    CHECK(holds(run({"--help"}).out, sub));
  }
}

TEST_CASE("usage errors are one line with the nearest name, exit code 2") {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& part) {
    const Run r = run(arguments);
    INFO(r.err);
    CHECK(r.code == 2);
    CHECK(r.out.empty());
    CHECK(r.error_lines() == 1);
    CHECK(holds(r.err, part));
  };
  refused({"rum", k8}, "unknown subcommand \"rum\"; did you mean \"run\"?");
  refused({"validat"}, "did you mean \"validate\"?");
  refused({"run", k8, "--sett", "/plan/tp=8"}, "unknown option --sett; did you mean \"--set\"?");
  refused({"run", "--hlep"}, "unknown option --hlep; did you mean \"--help\"?");
  refused({"run"}, "scenario");
  refused({"run", k8, "--seed", "-1"}, "\"-1\" is not a whole number");
  refused({"run", k8, "--seed", "1.5"}, "\"1.5\" is not a whole number");
  refused({"run", k8, "--seed", "99999999999999999999"}, "is not a whole number");
  refused({"run", k8, "--seed", ""}, "is not a whole number");
  refused({"run", k8, "--runs", "0"}, "1 to");
  refused({"run", k8, "--level", "4"}, "1 to 3");
  refused({"run", k8, "--jobs", "nan"}, "is not a whole number");
  refused({"run", k8, "--set"}, "--set");
  refused({"collective", kCluster, "--size", "1 GiB"}, "--op");
  refused({"topology", kCluster, "extra"}, "one argument too many");
  refused({"--bogus"}, "--bogus");
  CHECK(run({}).code == 2);
  CHECK(holds(run({}).err, "run"));
}

TEST_CASE("reserved options say so") {
  const Folder folder;
  CHECK(run({"run", k8, "--telemetry", "-"}).code == 2);
  CHECK(holds(run({"run", k64, "--level", "3"}).err, "at most 256 GPUs, not 512; --level 2"));
  CHECK(folder.files() == 0);
}

TEST_CASE("schema lists, prints and writes kinds") {
  CHECK(holds(run({"schema"}).out, "scenario\n"));
  CHECK(holds(run({"schema", "cluster"}).out, "\"title\": \"cluster\""));
  const Run wrong = run({"schema", "clustr"});
  CHECK(wrong.code == 2);
  CHECK(holds(wrong.err, "did you mean \"cluster\"?"));
  const Folder folder;
  CHECK(run({"schema", "-o", folder / "s"}).code == 0);
  CHECK(fs::exists(folder / "s/scenario.json"));
}

TEST_CASE("help and check do not load SimGrid") {
  // LD_DEBUG=libs makes the loader name every library it opens.
  ::setenv("LD_DEBUG", "libs", 1);
  const Run help = run({"--help"}), check = run({"check", k8});
  ::unsetenv("LD_DEBUG");
  CHECK(help.code == 0);
  CHECK(check.code == 0);
  CHECK(holds(help.err, "libstdc++"));
  CHECK(help.err.find("libsimgrid") == std::string::npos);
  CHECK(check.err.find("libsimgrid") == std::string::npos);
}
