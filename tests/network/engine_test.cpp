// Exactness of the engine on SimGrid. Each case runs in a child: a process holds one engine.
#include "network/engine.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>

#include "network/process.hpp"

using namespace tw;
using namespace tw::network;

namespace {

struct Start {
  double at_s = 0;
  int load_class = 0;
  double bytes = 0;
};

// End of each transfer, in order of the starts.
std::vector<double> ends(const std::vector<Link>& links, const std::vector<LoadClass>& classes,
                         const std::vector<Start>& starts) {
  const ChildResult r = in_child(
      [&] {
        auto engine = open_engine(links, classes);
        std::vector<double> end(starts.size(), -1);
        for (size_t i = 0; i < starts.size(); ++i)
          engine->at(starts[i].at_s, [&, i] {
            engine->start(starts[i].load_class, starts[i].bytes, [&, i] { end[i] = engine->now_s(); });
          });
        engine->run();
        std::string text;
        for (const double t : end) text += fmt::format("{:.17g} ", t);
        return text;
      },
      60);
  INFO(r.error);
  REQUIRE(r.code == ExitCode::done);
  std::istringstream in(r.value);
  std::vector<double> end;
  for (double t = 0; in >> t;) end.push_back(t);
  return end;
}

}  // namespace

TEST_CASE("25 GB/s is 25 GB/s and latencies add exactly") {
  const std::vector<Link> links{{"a", 25e9}, {"b", 25e9}};
  const auto end = ends(links, {{"one", {{0, 1}, {1, 1}}, 1e-6}}, {{0, 0, 25e9}});
  CHECK(end[0] == Approx(1.000001).epsilon(1e-12));
}

TEST_CASE("N transfers over one link get 1/N each, whatever their latencies") {
  std::vector<LoadClass> classes;
  for (const double us : {1.0, 2.0, 5.0, 20.0}) classes.push_back({fmt::format("{} us", us), {{0, 1}}, us * 1e-6});
  classes.push_back({"no latency", {{0, 1}}, 0});
  std::vector<Start> starts;
  for (int k = 0; k < 5; ++k) starts.push_back({0, k, 25e9});
  const auto end = ends({{"shared", 25e9}}, classes, starts);
  for (size_t k = 0; k < 5; ++k) CHECK(end[k] == Approx(5).margin(30e-6));
  // To the microsecond: the one without latency has the link alone for 1 us, then halves it, and so on.
  CHECK(end[4] < end[0]);
  CHECK(end[3] == Approx(5.0).margin(2e-8));  // all bytes are there at 5 s: nothing of the link is lost
}

TEST_CASE("a transfer over two links runs at the slower, and leaves the rest to others") {
  const std::vector<Link> links{{"fast", 100}, {"slow", 50}};
  const auto end = ends(links, {{"both", {{0, 1}, {1, 1}}, 0}, {"fast only", {{0, 1}}, 0}}, {{0, 0, 500}, {0, 1, 500}});
  CHECK(end[0] == Approx(10).epsilon(1e-9));
  CHECK(end[1] == Approx(10).epsilon(1e-9));
}

TEST_CASE(
    "weights: a collective that crosses a link three times shares it 3 to 1 in bytes, alone it takes three times") {
  const std::vector<Link> links{{"l", 100}};
  const LoadClass heavy{"heavy", {{0, 3}}, 0}, light{"light", {{0, 1}}, 0};
  CHECK(ends(links, {heavy}, {{0, 0, 100}})[0] == Approx(3).epsilon(1e-9));
  // Both get half of the link: 300 bytes cross for the one, 300 for the other.
  const auto end = ends(links, {heavy, light}, {{0, 0, 100}, {0, 1, 300}});
  CHECK(end[0] == Approx(6).epsilon(1e-9));
  CHECK(end[1] == Approx(6).epsilon(1e-9));
  // Repeated uses add up.
  CHECK(ends(links, {{"twice", {{0, 1}, {0, 1}}, 0}}, {{0, 0, 100}})[0] == Approx(2).epsilon(1e-9));
}

TEST_CASE("a ring with a slow adapter and two transfers beside it") {
  // Eight edges, one at half speed; p2p transfers over edge 5 at 0 and at 30 s. By hand: the ring needs 7/8 * 2 * 2800
  // bytes over the slow edge of 50: 98 s alone; it never uses more than 50 of the fast edges, so the others get 50.
  std::vector<Link> links;
  LoadClass ring{"ring", {}, 0};
  for (int i = 0; i < 8; ++i) {
    links.push_back({fmt::format("edge {}", i), i == 3 ? 50.0 : 100.0});
    ring.uses.push_back({i, 1.75});
  }
  const auto end = ends(links, {ring, {"p2p", {{5, 1}}, 0}}, {{0, 0, 1600}, {0, 1, 800}, {30, 1, 800}});
  CHECK(end[0] == Approx(56).epsilon(1e-9));
  CHECK(end[1] == Approx(16).epsilon(1e-9));
  CHECK(end[2] == Approx(46).epsilon(1e-9));
}

TEST_CASE("fractions of a byte and transfers of nothing") {
  const std::vector<Link> links{{"l", 4}};
  CHECK(ends(links, {{"c", {{0, 1}}, 0}}, {{0, 0, 2.5}})[0] == Approx(0.625).epsilon(1e-3));
  CHECK(ends(links, {{"c", {{0, 1}}, 2e-6}}, {{1, 0, 0}})[0] == Approx(1.000002).epsilon(1e-12));
  CHECK(ends(links, {{"no links", {}, 3e-6}}, {{0, 0, 1e9}})[0] == Approx(3e-6).epsilon(1e-12));
}

TEST_CASE("equal times run in the order they were asked for") {
  const ChildResult r = in_child([] {
    auto engine = open_engine({}, {});
    std::string order;
    for (int i = 0; i < 40; ++i) engine->at(1, [&order, i] { order += fmt::format("{} ", i); });
    engine->at(0.5, [&] { engine->at(1, [&] { order += "last"; }); });
    engine->run();
    return order;
  });
  std::string wanted;
  for (int i = 0; i < 40; ++i) wanted += fmt::format("{} ", i);
  CHECK(r.value == wanted + "last");
}

TEST_CASE("what cannot be simulated is an error that names the transfer, never a time") {
  const auto error_of = [](const std::vector<Link>& links, const LoadClass& c) {
    const ChildResult r = in_child([&] {
      auto engine = open_engine(links, {c});
      engine->start(0, 1, [] {});
      engine->run();
      return std::string("a time");
    });
    CHECK(r.code == ExitCode::simulation_failed);
    return r.error;
  };
  CHECK_THAT(error_of({{"dead", 0}}, {"bucket 3", {{0, 1}}, 0}), Catch::Contains("\"bucket 3\" crosses dead"));
  CHECK_THAT(error_of({}, {"bucket 4", {{0, 1}}, 0}), Catch::Contains("does not exist"));
  CHECK_THAT(error_of({{"l", 1}}, {"bucket 5", {{0, 1}}, std::nan("")}), Catch::Contains("latency"));
  CHECK_THAT(error_of({{"l", 1}}, {"bucket 6", {{0, -1}}, 0}), Catch::Contains("weight"));
}
