// Random copies to and from the host's memory: all of them are made, none is faster than its link, and each begins when
// what it copies is there and ends before it is waited for.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "core/document.hpp"
#include "core/random.hpp"
#include "step/cost.hpp"
#include "step/host_copies.hpp"
#include "workload/memory.hpp"
#include "workload/pattern.hpp"

using namespace tw;

namespace {

double draw(SplitMix64& stream, double low, double high) {
  return low + (high - low) * uniform(stream);
}

}  // namespace

TEST_CASE(
    "random copies beside layers: bytes are conserved, and a pass is as long as its layers and its link at least") {
  for (int n = 0; n < 400; ++n) {
    auto stream = random_stream(17, "copies to the host", static_cast<uint64_t>(n));
    const int layers = 1 + static_cast<int>(stream() % 40), offloaded = 1 + static_cast<int>(stream() % 40);
    const double layer_s = draw(stream, 0.1, 2);
    const size_t due = offload_due(offloaded, layers).size();
    std::vector<double> copy_s(due);
    for (double& c : copy_s) c = stream() % 5 == 0 ? 0 : draw(stream, 0.01, 3);
    const double all_s = std::accumulate(copy_s.begin(), copy_s.end(), 0.0);
    for (const bool backward : {false, true}) {
      INFO("case " << n << (backward ? ", backward" : ", forward"));
      TaskList list(1, false);
      HostCopies host(list, copy_s, layers, backward);
      TimedOperation layer;
      layer.task.length_s = layer_s;
      for (int l = 0; l < layers; ++l) {
        host.before(l);
        list.add(layer);
        host.after(l);
      }
      list.copy(0, -1);
      const Played played = play(list.tasks, 1.5, false);
      double moved_s = 0, last_s = 0, kernels_s = 0, free_s = 0;
      for (size_t i = 0; i < list.tasks.size(); ++i) {
        const Task& t = list.tasks[i];
        const double took_s = played.done_s[i] - played.begin_s[i];
        if (t.stream == Stream::compute) kernels_s += took_s;
        if (t.stream != (backward ? Stream::from_host : Stream::to_host)) continue;
        moved_s += t.length_s;
        CHECK(took_s == Approx(t.length_s).epsilon(1e-9));  // beside kernels neither is slower
        CHECK(played.begin_s[i] >= free_s - 1e-9);          // one engine each way
        free_s = last_s = played.done_s[i];
      }
      CHECK(moved_s == Approx(all_s).epsilon(1e-12).margin(1e-15));
      CHECK(kernels_s == Approx(layers * layer_s).epsilon(1e-9));
      CHECK(played.end_s >= std::max(layers * layer_s, all_s) * (1 - 1e-12));
      CHECK(played.end_s >= last_s - 1e-9);
      CHECK(played.end_s <= (layers * layer_s + all_s) * (1 + 1e-12));
    }
  }
}

TEST_CASE("random plans with activations in the host's memory: a pass takes their bytes over the link at least") {
  const auto network = load<Architecture>("models/networks/llama-layers.json");
  auto software = load<Software>("models/software/pytorch-eager-2.11.json");
  for (int n = 0; n < 40; ++n) {
    auto stream = random_stream(18, "copies to the host", static_cast<uint64_t>(n));
    INFO("case " << n);
    Training training;
    training.sequence = 1024 << stream() % 4;
    training.optimizer = Optimizer{};
    training.offload_layers = 1 + static_cast<int>(stream() % 60);
    Plan plan;
    plan.sequence_parallel = false;
    plan.dp = plan.gbs = 2;
    Cluster cluster;
    cluster.node.accelerator = load<Accelerator>("models/accelerators/h200-sxm.json");
    cluster.node.host_memory.bandwidth = bytes_per_second(800e9);
    cluster.node.host_memory.copy_bandwidth = bytes_per_second(draw(stream, 1e9, 100e9));
    const Software release = with_optimizer(software, training);
    const StepInputs in{&network, &training, nullptr, &cluster, &release, &plan};
    const PassCost pass = chunk_costs(
                              in, [](Exchange, double) { return 0.0; }, {}, Pass::training)
                              .front();
    const double kept = kept_activation_bytes(network, layer_kinds(network).front(), training, plan, release);
    const double bytes = kept * static_cast<double>(offload_due(training.offload_layers, network.layers).size());
    const double away =
        memory_of_stages(network, training, plan, release, {network.layers}, {StageWork{}}).front().host_activations;
    CHECK(away == Approx(bytes).epsilon(1e-9));
    const double link_s = bytes / cluster.node.host_copy_Bps();
    CHECK(pass.forward.device_s() >= link_s * (1 - 1e-9));
    CHECK(pass.backward.device_s() >= link_s * (1 - 1e-9));
    training.offload_layers = 0;
    const PassCost here = chunk_costs(
                              in, [](Exchange, double) { return 0.0; }, {}, Pass::training)
                              .front();
    CHECK(pass.forward.device_s() >= here.forward.device_s() * (1 - 1e-9));
    CHECK(pass.forward.device_s() <= (here.forward.device_s() + link_s) * (1 + 1e-9));
    CHECK(pass.backward.device_s() <= (here.backward.device_s() + link_s) * (1 + 1e-9));
  }
}
