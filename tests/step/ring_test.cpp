// Ring attention over context-parallel ranks, played by hand: what travels beside which piece, and what is waited for.
#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "step/cost.hpp"
#include "workload/operations.hpp"

using namespace tw;

namespace {

// A stack of one kind of layers without tensor parallelism, whose exchanges take a time for each byte.
struct Ring {
  Architecture network = load<Architecture>("models/networks/llama2-70b.json");
  Software software;
  Cluster cluster;
  Training training;
  Plan plan;
  explicit Ring(int cp) {
    network.layers = 1;
    network.vocabulary = 0;
    training.sequence = 8192;
    plan.cp = cp, plan.gbs = 8;
    software.streams.kernel_beside_exchange = 1;
    software.streams.exchange_beside_kernel = 1;
    cluster.node.accelerator = load<Accelerator>("models/accelerators/h100-sxm.json");
  }
  // Of keys and values of a rank, in BF16.
  double slice() const { return 2.0 * 8192 / plan.cp * 2 * 8 * 128; }
  PassCost cost(double slice_s) const {
    const auto exchange = [&](Exchange what, double bytes) {
      return what == Exchange::cp_exchange ? slice_s * bytes / slice() : 0.0;
    };
    return chunk_costs({&network, &training, nullptr, &cluster, &software, &plan}, exchange, {}, Pass::training)
        .front();
  }
  // Bytes of each round of a pass.
  std::vector<double> rounds(bool backward) const {
    std::vector<double> bytes;
    const LayerOperations layer = layer_operations(network, training, plan, software);
    for (const Operation& o : backward ? layer.backward : layer.forward)
      if (o.exchange == Exchange::cp_exchange) bytes.push_back(o.bytes / slice());
    return bytes;
  }
};

}  // namespace

TEST_CASE("a ring: keys and values go round, their gradients follow a round behind and come home in the last") {
  CHECK(Ring(2).rounds(false) == std::vector<double>{1});
  CHECK(Ring(2).rounds(true) == std::vector<double>{1, 1});
  CHECK(Ring(4).rounds(false) == std::vector<double>{1, 1, 1});
  CHECK(Ring(4).rounds(true) == std::vector<double>{1, 2, 2, 1});
  CHECK(Ring(1).rounds(true).empty());
}

TEST_CASE("rounds that are shorter than a piece hide, longer ones are waited for: by hand") {
  for (const int cp : {2, 4}) {
    CAPTURE(cp);
    const Ring ring(cp);
    const PassCost alone = ring.cost(0);
    const double forward_s = alone.forward.busy[Activity::attention_forward] / cp,
                 backward_s = alone.backward.busy[Activity::attention_backward] / cp;
    // Forward, the last piece has nothing beside it; backward each has a round, the middle ones of double size.
    for (const double slice_s : {0.1 * forward_s, 0.9 * forward_s, 3 * backward_s}) {
      CAPTURE(slice_s, forward_s, backward_s);
      const PassCost c = ring.cost(slice_s);
      double waits_s = 0;
      for (int p = 0; p < cp; ++p) {
        const bool middle = p > 0 && p + 1 < cp;
        waits_s += std::max(0.0, (middle ? 2 : 1) * slice_s - backward_s);
      }
      CHECK(c.forward.cp_s == Approx((cp - 1) * std::max(0.0, slice_s - forward_s)).margin(1e-12));
      CHECK(c.backward.cp_s == Approx(waits_s).margin(1e-12));
      CHECK(c.backward.busy.total() == Approx(alone.backward.busy.total()));
    }
  }
}
