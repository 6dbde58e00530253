// What waits in the host's memory: copies beside kernels, and the update of states, in closed form.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "core/document.hpp"
#include "step/cost.hpp"
#include "step/host_copies.hpp"
#include "workload/memory.hpp"
#include "workload/parameters.hpp"
#include "workload/pattern.hpp"

using namespace tw;

namespace {

struct OffloadLab {
  Architecture network = load<Architecture>("models/networks/llama-layers.json");
  Software software = load<Software>("models/software/pytorch-eager-2.11.json");
  Cluster cluster;
  Training training;
  Plan plan;
  OffloadLab() {
    training.sequence = 4096;
    training.optimizer = Optimizer{};
    software = with_optimizer(software, training);
    plan.sequence_parallel = false;
    plan.dp = plan.gbs = 2;
    cluster.node.accelerator = load<Accelerator>("models/accelerators/h200-sxm.json");
    cluster.node.host_memory.bandwidth = bytes_per_second(800e9);
    cluster.node.host_memory.copy_bandwidth = bytes_per_second(50e9);
    cluster.node.host_memory.update_efficiency = 0.5;
  }
  StepInputs inputs() const { return {&network, &training, nullptr, &cluster, &software, &plan}; }
  TaskCost update() const { return optimizer_cost(inputs()); }
  StageMemory memory() const {
    return memory_of_stages(network, training, plan, software, {network.layers}, {StageWork{}}).front();
  }
  PassCost pass() const {
    return chunk_costs(
               inputs(), [](Exchange, double) { return 0.0; }, {}, Pass::training)
        .front();
  }
};

// Three queues, one after the other, served in equal chunks.
double in_chunks(double in, double update, double out, int chunks) {
  return (in + update + out + (chunks - 1) * std::max({in, update, out})) / chunks;
}

// A pass over layers of one second, of which the first are copied.
double pass_s(int layers, int offloaded, double copy_s, bool backward) {
  TaskList list(1, false);
  HostCopies host(list, std::vector<double>(static_cast<size_t>(offloaded), copy_s), layers, backward);
  TimedOperation layer;
  layer.task.length_s = 1;
  for (int l = 0; l < layers; ++l) {
    host.before(l);
    list.add(layer);
    host.after(l);
  }
  list.copy(0, -1);
  return play(list.tasks, 1.5, false).end_s;
}

}  // namespace

TEST_CASE("copies of activations hide beside layers, and a pass is as long as they are where they cannot") {
  CHECK(offload_due(2, 8) == std::vector<int>{3, 7});
  CHECK(offload_due(3, 8) == std::vector<int>{2, 5, 7});
  CHECK(offload_due(100, 8) == std::vector<int>{1, 2, 3, 4, 5, 6, 7});
  for (const bool backward : {false, true}) {
    for (const double copy_s : {0.4, 1.0}) CHECK(pass_s(8, 7, copy_s, backward) == Approx(8).epsilon(1e-12));
    for (const double copy_s : {1.25, 3.0})
      CHECK(pass_s(8, 7, copy_s, backward) == Approx(1 + 7 * copy_s).epsilon(1e-12));
    // Two of eight: the first has the next three layers, the second four.
    CHECK(pass_s(8, 2, 3, backward) == Approx(8).epsilon(1e-12));
    CHECK(pass_s(8, 2, 3.5, backward) == Approx(1 + 3.5 + 4).epsilon(1e-12));
    CHECK(pass_s(8, 2, 5, backward) == Approx(1 + 5 + 5).epsilon(1e-12));
  }
}

TEST_CASE("a step with activations in the host's memory waits for its link as far as layers are shorter") {
  OffloadLab lab;
  const PassCost here = lab.pass();
  lab.training.offload_layers = 100;
  lab.cluster.node.host_memory.copy_bandwidth = lab.cluster.node.host_memory.bandwidth = bytes_per_second(1e15);
  CHECK(lab.pass().forward.device_s() == Approx(here.forward.device_s()));
  CHECK(lab.pass().backward.device_s() == Approx(here.backward.device_s()));
  // All but the last of the layers go over a link that is far too slow.
  lab.cluster.node.host_memory.copy_bandwidth = bytes_per_second(1e9);
  const double bytes =
      kept_activation_bytes(lab.network, layer_kinds(lab.network).front(), lab.training, lab.plan, lab.software);
  const PassCost away = lab.pass();
  const int layers = lab.network.layers;
  CHECK(away.forward.device_s() == Approx((layers - 1) * bytes / 1e9 + here.forward.device_s() / layers).epsilon(1e-6));
  CHECK(away.forward.busy.total() == Approx(here.forward.busy.total()));
  CHECK(lab.memory().host_activations == Approx((layers - 1) * bytes));
  CHECK(away.backward.device_s() > (layers - 1) * bytes / 1e9);
}

TEST_CASE("states updated by the host: gradients go, weights come, and the device updates the others meanwhile") {
  OffloadLab lab;
  const double kernels_s = lab.update().device_s(), states = lab.memory().optimizer, parameters = states / 12;
  lab.training.offload_states = 0.5;
  CHECK(lab.memory().optimizer == Approx(states / 2));
  CHECK(lab.memory().host_states == Approx(states / 2 + 4 * parameters / 2));
  const int gpus = lab.cluster.node.gpus, chunks = static_cast<int>(std::ceil(states / 2 / 256e6));
  const double out_s = 4 * parameters / 2 / 50e9, in_s = 2 * parameters / 2 / 50e9;
  const double update_s = 28 * parameters / 2 / (800e9 * 0.5 / gpus);
  CHECK(lab.update().device_s() == Approx(in_chunks(out_s, update_s, in_s, chunks)));
  CHECK(lab.update().busy.total() == Approx(kernels_s / 2));
  lab.training.offload_overlap = false;
  CHECK(lab.update().device_s() == Approx(out_s + update_s + in_s));
  // A fast enough host hides behind the device's own half.
  lab.training.offload_states = 0.001;
  CHECK(lab.update().device_s() == Approx(0.999 * kernels_s));
  lab.training.offload_states = 1;
  CHECK(lab.memory().optimizer == 0);
}

TEST_CASE("states that come for the update and go again take what the link takes, both ways at once") {
  OffloadLab lab;
  const double kernels_s = lab.update().device_s(), states = lab.memory().optimizer;
  lab.training.offload_states = 1;
  lab.training.offload_update = OffloadUpdate::device;
  CHECK(lab.memory().host_states == Approx(states));
  const double copy_s = states / 50e9;
  const int chunks = static_cast<int>(std::ceil(states / 256e6));
  REQUIRE(copy_s > kernels_s);
  CHECK(lab.update().device_s() == Approx(in_chunks(copy_s, kernels_s, copy_s, chunks)));
  CHECK(lab.update().busy.total() == Approx(kernels_s));
  // With a link to all accelerators faster than the host's memory, the memory counts.
  lab.cluster.node.host_memory.bandwidth = bytes_per_second(8e9);
  CHECK(lab.update().device_s() > 49 * copy_s * lab.cluster.node.gpus / 8);
}
