// Level 3 of a step: what is seen of an exchange that has its links for itself stands for the next ones of its kind.
#include "network/message_engine.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <sstream>

#include "../topology/clusters.hpp"
#include "network/process.hpp"
#include "topology/placement.hpp"

using namespace tw;
using namespace tw::network;

namespace {

struct Asked {
  int load_class = 0;
  double at_s = 0, bytes = 0;
  int times = 1;  // one after the other
};

// Two units of four nodes with two accelerators each. Classes: 0 an all-to-all of the first unit, 1 one of the second,
// 2 rings over both, first to reduce and then to gather, 3 a load on the adapters of the first node.
std::vector<double> ends_of(const std::vector<Asked>& asked, bool replay) {
  Cluster c = test::reference_cluster();
  c.node.gpus = c.node.nics = 2;
  c.fabric.units = 2;
  c.fabric.nodes_per_unit = 4;
  const Fabric f = build_fabric(c);
  const auto first = ranks_of(f, {0, 1, 2, 3}), second = ranks_of(f, {4, 5, 6, 7}),
             all = ranks_of(f, place_packed(f, 8));
  const std::vector<LoadClass> classes{{"first", {}, 0},
                                       {"second", {}, 0},
                                       {"rings", {}, 0},
                                       {"load", {{f.nic_link_out(0, 0), 1}, {f.nic_link_out(0, 1), 1}}, 1e-5}};
  const std::vector<ClassParts> parts{{{Operation::all_to_all, {first}, "direct", Protocol::simple, 1, 2}},
                                      {{Operation::all_to_all, {second}, "direct", Protocol::simple, 1, 2}},
                                      {{Operation::reduce_scatter, {all}, "ring", Protocol::simple, 1, 1},
                                       {Operation::all_gather, {all}, "ring", Protocol::simple, 0.5, 1}},
                                      {}};
  const ChildResult text = in_child([&] {
    const auto engine = message_engine(f, {}, classes, parts, 16, replay);
    std::vector<double> at(asked.size(), 0);
    std::function<void(size_t, int)> turn = [&](size_t i, int left) {
      at[i] = engine->now_s();
      if (left > 0) engine->start(asked[i].load_class, asked[i].bytes, [&, i, left] { turn(i, left - 1); });
    };
    for (size_t i = 0; i < asked.size(); ++i) engine->at(asked[i].at_s, [&, i] { turn(i, asked[i].times); });
    engine->run();
    std::string out;
    for (const double s : at) out += fmt::format("{:.17g} ", s);
    return out;
  });
  INFO(text.error);
  REQUIRE(text.code == ExitCode::done);
  std::istringstream in(text.value);
  std::vector<double> list;
  for (double x = 0; in >> x;) list.push_back(x);
  return list;
}

void check_replay(const std::vector<Asked>& asked, double epsilon) {
  const std::vector<double> sent = ends_of(asked, false), seen = ends_of(asked, true);
  REQUIRE(sent.size() == asked.size());
  REQUIRE(seen.size() == asked.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    INFO("class " << asked[i].load_class);
    CHECK(seen[i] == Approx(sent[i]).epsilon(epsilon));
  }
}

}  // namespace

TEST_CASE("an exchange that comes again to links of its own takes what it took, to 1e-9") {
  check_replay({{0, 0, 1e8, 6}}, 1e-9);
  check_replay({{0, 0, 1e8, 3}, {1, 0.001, 1e8, 5}, {0, 1, 3e7, 3}, {2, 2, 1e9, 3}}, 1e-9);  // units share nothing
}

TEST_CASE("an exchange that is met by another sends what it has not yet sent") {
  const double alone_s = ends_of({{0, 0, 1e8, 1}}, false).front();
  // In the middle of the third of four, or of its first or last messages.
  for (const double into : {0.002, 0.3, 0.5, 0.77, 0.999}) {
    INFO(into);
    const double at_s = (2 + into) * alone_s;
    check_replay({{0, 0, 1e8, 4}, {3, at_s, 5e8, 1}}, 2e-3);
    check_replay({{0, 0, 1e8, 4}, {2, at_s, 1e8, 1}}, 5e-3);
    check_replay({{2, 0, 1e8, 5}, {0, at_s, 1e8, 2}}, 5e-3);
  }
  // From the first time on, nothing is seen and nothing replayed.
  check_replay({{0, 0, 1e8, 4}, {2, 1e-4, 1e9, 3}}, 1e-9);
}
