#include "network/process.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "network/engine.hpp"

using namespace tw;

TEST_CASE("answers come back in the order of the questions") {
  ChildOptions options;
  options.jobs = 3;
  size_t told = 0;
  options.progress = [&](size_t done, size_t all) {
    CHECK((done == told || done == told + 1));
    told = done;
    CHECK(all == 7);
  };
  const auto results = in_children(
      7,
      [](size_t i) {
        usleep(static_cast<useconds_t>((7 - i) * 3000));
        return std::string(200000 + i, static_cast<char>('a' + i));  // longer than a pipe holds
      },
      options);
  for (size_t i = 0; i < 7; ++i) CHECK(results[i].value == std::string(200000 + i, static_cast<char>('a' + i)));
  CHECK(told == 7);
  CHECK(results[0].peak_bytes > 0);
}

// A bar moves while one long scenario runs.
TEST_CASE("progress is told while children work, not only when they end") {
  ChildOptions options;
  int waited = 0;
  options.progress = [&](size_t done, size_t) { waited += done == 0; };
  const auto work = [](size_t) {
    usleep(450000);
    return std::string("done");
  };
  in_children(1, work, options);
  CHECK(waited >= 3);
  waited = 0;
  stream_from_children(
      1, {}, work, [](size_t, ChildResult&&) {}, options);
  CHECK(waited >= 3);
}

TEST_CASE("an exception keeps its meaning") {
  CHECK(in_child([]() -> std::string { throw DoesNotFit("too big"); }).code == ExitCode::does_not_fit);
  CHECK(in_child([]() -> std::string { throw SimulationError("stuck"); }).error == "stuck");
  CHECK(in_child([]() -> std::string { throw std::logic_error("a bug"); }).code == ExitCode::bug);
  CHECK(in_child([]() -> std::string { throw InputError({{"f", "/p", "wrong", ""}}); }).error == "f: /p: wrong");
  CHECK_THROWS_AS(rethrow(in_child([]() -> std::string { throw DoesNotFit("too big"); })), DoesNotFit);
}

TEST_CASE("a child that aborts, stops answering or never ends is a failed simulation") {
  const ChildResult aborted = in_child([]() -> std::string {
    std::fprintf(stderr, "first line\nthe link \"x\" exists twice\n");
    std::abort();
  });
  CHECK(aborted.code == ExitCode::simulation_failed);
  CHECK_THAT(aborted.error, Catch::Contains("signal 6") && Catch::Contains("the link \"x\" exists twice"));
  const ChildResult silent = in_child([]() -> std::string { _exit(0); });
  CHECK(silent.code == ExitCode::simulation_failed);
  const ChildResult slow = in_child(
      []() -> std::string {
        for (;;) usleep(1000);
      },
      0.05);
  CHECK_THAT(slow.error, Catch::Contains("did not finish within 0.05 s"));
}

// A limit counts all processes of a user: one of its own in these tests, which root alone may become.
TEST_CASE("where no process can be started a simulation fails; where few can, those do the work") {
  const auto with_processes = [](rlim_t most) {
    return in_child([most] {
      constexpr uid_t kNobody = 1'987'654;
      const rlimit limit{most, most};
      if (geteuid() == 0 && setuid(kNobody) != 0) return std::string("no right");
      if (setrlimit(RLIMIT_NPROC, &limit) != 0) return std::string("no right");
      ChildOptions options;
      options.jobs = 3;
      std::string all;
      for (const ChildResult& r : in_children(
               7, [](size_t i) { return std::to_string(i); }, options))
        all += r.value;
      return all;
    });
  };
  const ChildResult none = with_processes(0);
  CHECK(none.code == ExitCode::simulation_failed);
  CHECK_THAT(none.error, Catch::Contains("no child process"));
  if (geteuid() == 0) CHECK(with_processes(2).value == "0123456");
}

TEST_CASE("an interruption ends the children") {
  ChildOptions options;
  bool stop = false;
  options.interrupted = [&] { return stop; };
  options.progress = [&](size_t done, size_t) { stop = done > 0; };
  const auto results = in_children(
      3,
      [](size_t i) -> std::string {
        if (i > 0) pause();
        return "first";
      },
      options);
  CHECK(results[0].value == "first");
  CHECK(results[1].code == ExitCode::interrupted);
  CHECK(results[2].code == ExitCode::interrupted);
}

TEST_CASE("a second engine in one process is refused") {
  const ChildResult r = in_child([]() -> std::string {
    const auto first = network::open_engine({}, {});
    network::open_engine({}, {});
    return "two";
  });
  CHECK_THAT(r.error, Catch::Contains("one engine"));
}

TEST_CASE("streamed children: every result once, prepared once, nothing of the caller's in them") {
  ChildOptions options;
  options.jobs = 3;
  int opened = 0, prepared = 0;
  std::vector<std::string> values(9);
  stream_from_children(
      9, [&] { ++prepared; },
      [&](size_t i) { return std::to_string(i * i) + (opened == 0 && prepared == 1 ? "" : " wrong"); },
      [&](size_t i, ChildResult&& r) {
        ++opened;  // what happens here is in none of them
        values[i] = std::move(r.value);
      },
      options);
  CHECK(opened == 9);
  CHECK(prepared == 0);
  for (size_t i = 0; i < 9; ++i) CHECK(values[i] == std::to_string(i * i));
  CHECK_THROWS_WITH(stream_from_children(
                        100, {}, [](size_t) { return std::string("x"); },
                        [](size_t, ChildResult&&) { throw std::runtime_error("disk full"); }, options),
                    "disk full");
  CHECK_THROWS_AS(stream_from_children(
                      1, [] { throw SimulationError("no module"); }, [](size_t) { return std::string(); },
                      [](size_t, ChildResult&&) {}, options),
                  SimulationError);
}
