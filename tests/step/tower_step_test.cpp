// Towers in a step: they lengthen the visits of the first chunk by what they do, and no others.
#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "step/chunk_program.hpp"
#include "step/step_kernels.hpp"
#include "workload/tower.hpp"

using namespace tw;

namespace {

struct Scout {
  Architecture network = load<Architecture>("models/networks/llama4-scout-vision.json");
  Software software = load<Software>("models/software/nemo-25.04.json");
  Cluster cluster;
  Training training;
  Plan plan;
  Scout() {
    training.sequence = 8192;
    plan.tp = 4, plan.pp = 4, plan.ep = 4, plan.dp = 4, plan.gbs = 16;
    cluster.node.accelerator = load<Accelerator>("models/accelerators/h200-sxm.json");
  }
  std::vector<PassCost> costs() const {
    const StepInputs in{&network, &training, nullptr, &cluster, &software, &plan};
    return chunk_costs(
        in, [](Exchange, double bytes) { return 1e-5 + bytes * 1e-12; }, {}, Pass::training);
  }
};

}  // namespace

TEST_CASE("a tower lengthens the first chunk's visits alone; frozen, its backward by its projector alone") {
  Scout sees;
  const auto with = sees.costs();
  Scout blind;
  blind.network.towers.clear();
  const auto without = blind.costs();
  CHECK(with[0].forward.flops - without[0].forward.flops == Approx([&] {
          double sum = 0;
          for (const Operation& o : tower_operations(sees.network, sees.training, sees.plan, sees.software).forward)
            sum += o.flops;
          return sum;
        }()));
  CHECK(with[0].forward.device_s() > without[0].forward.device_s());
  CHECK(with[0].backward.device_s() > without[0].backward.device_s());
  for (size_t c = 1; c < with.size(); ++c) {
    CHECK(with[c].forward.device_s() == without[c].forward.device_s());
    CHECK(with[c].backward.device_s() == without[c].backward.device_s());
  }
  // Its gradients leave with those of the first chunk.
  const auto sent = [](const PassCost& cost) {
    double bytes = 0;
    for (const Bucket& b : cost.buckets) bytes += b.bytes.total();
    return bytes;
  };
  double held = 0;
  const StepInputs in{&sees.network, &sees.training, nullptr, &sees.cluster, &sees.software, &sees.plan};
  for (const ParameterGroup& g : groups_of(in))
    if (g.tower != 0) held += g.held;
  CHECK(sent(with[0]) - sent(without[0]) == Approx(held * sees.software.memory.gradient_bytes_per_parameter));
  sees.training.frozen_towers = {"vision"};
  const auto frozen = sees.costs();
  CHECK(frozen[0].forward.device_s() > without[0].forward.device_s());
  CHECK(frozen[0].backward.device_s() > without[0].backward.device_s());
  CHECK(frozen[0].backward.device_s() < with[0].backward.device_s());
}

TEST_CASE("a stage of towers alone has the tower, the embedding and no layer") {
  Scout sees;
  sees.plan.pp = 4, sees.plan.layout = "VE|t*16|t*16|t*16L";
  const auto costs = sees.costs();
  Scout blind = sees;
  blind.network.towers.clear();
  const auto without = blind.costs();
  CHECK(costs[0].forward.device_s() > 10 * without[0].forward.device_s());
  CHECK(costs[1].forward.device_s() == without[1].forward.device_s());
  sees.plan.sharding = Sharding::zero3;
  CHECK(sees.costs()[0].first_forward.device_s() > 0);
}
