// Our own max-min sharing against SimGrid's: the same ends for random transfers over random links.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>

#include "core/random.hpp"
#include "network/engine.hpp"
#include "network/process.hpp"

using namespace tw;
using namespace tw::network;

namespace {

struct Transfers {
  std::vector<Link> links;
  std::vector<LoadClass> classes;
  struct Start {
    double at_s = 0;
    int load_class = 0;
    double bytes = 0;
  };
  std::vector<Start> starts;
};

Transfers random_case(uint64_t seed) {
  auto stream = random_stream(seed, "fluid engine");
  const auto pick = [&](int n) { return static_cast<int>(uniform(stream) * n); };
  Transfers c;
  const int links = 2 + pick(7);
  for (int l = 0; l < links; ++l) c.links.push_back({fmt::format("l{}", l), (1 + pick(4)) * 25e9});
  for (int k = 0; k < 3 + pick(8); ++k) {
    LoadClass load;
    load.name = fmt::format("c{}", k);
    load.latency_s = pick(3) * 1e-5;
    for (int l = 0; l < links; ++l)
      if (pick(3) == 0) load.uses.push_back({l, 1.0 + pick(3)});
    if (load.uses.empty()) load.uses.push_back({pick(links), 1});
    c.classes.push_back(load);
  }
  for (int s = 0; s < 40; ++s)
    c.starts.push_back({pick(20) * 0.01, pick(static_cast<int>(c.classes.size())), (1 + pick(100)) * 1e7});
  return c;
}

std::vector<double> ends(Engine& engine, const Transfers& c) {
  std::vector<double> end(c.starts.size(), -1);
  for (size_t i = 0; i < c.starts.size(); ++i)
    engine.at(c.starts[i].at_s,
              [&, i] { engine.start(c.starts[i].load_class, c.starts[i].bytes, [&, i] { end[i] = engine.now_s(); }); });
  engine.run();
  return end;
}

}  // namespace

TEST_CASE("our own sharing gives SimGrid's times for random transfers") {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const Transfers c = random_case(seed);
    const ChildResult r = in_child(
        [&] {
          std::string text;
          for (const double t : ends(*open_engine(c.links, c.classes), c)) text += fmt::format("{:.17g} ", t);
          return text;
        },
        60);
    REQUIRE(r.code == ExitCode::done);
    std::istringstream in(r.value);
    const auto own = ends(*fluid_engine(c.links, c.classes), c);
    INFO("seed " << seed);
    for (const double mine : own) {
      double theirs = 0;
      in >> theirs;
      CHECK(mine == Approx(theirs).epsilon(1e-9));
    }
  }
}

TEST_CASE("transfers that never meet take the time they take alone") {
  const std::vector<Link> links{{"a", 25e9}, {"b", 50e9}};
  const std::vector<LoadClass> classes{{"one", {{0, 1}}, 1e-6}, {"two", {{1, 2}}, 0}};
  const auto engine = fluid_engine(links, classes);
  double one = 0, two = 0;
  engine->start(0, 25e9, [&] { one = engine->now_s(); });
  engine->start(1, 25e9, [&] { two = engine->now_s(); });
  engine->run();
  CHECK(one == Approx(1.000001).epsilon(1e-12));
  CHECK(two == Approx(1).epsilon(1e-12));
}
