// What a release of Megatron-Core and Transformer Engine does around its products: tensor-parallel exchanges in pieces,
// agreement on FP8 scales, sums of biases' gradients.
#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "step/cost.hpp"
#include "workload/operations.hpp"

using namespace tw;

namespace {

constexpr double kGather = 50e-6, kScatter = 80e-6, kAmax = 30e-6;

struct Stack {
  Architecture network = load<Architecture>("models/networks/gpt3-175b.json");
  Software software;
  Cluster cluster;
  Training training;
  Plan plan;
  Stack() {
    network.layers = 4;
    network.vocabulary = 0;
    training.sequence = 2048;
    training.precision = Precision::bf16;
    plan.tp = 4, plan.gbs = 8;
    software.streams.kernel_beside_exchange = 1;
    software.streams.exchange_beside_kernel = 1;
    cluster.node.accelerator = load<Accelerator>("models/accelerators/h100-sxm.json");
  }
  PassCost cost() const {
    const auto exchange = [](Exchange what, double) {
      return what == Exchange::tp_all_gather       ? kGather
             : what == Exchange::tp_reduce_scatter ? kScatter
             : what == Exchange::amax_reduce       ? kAmax
                                                   : 0.0;
    };
    return chunk_costs({&network, &training, nullptr, &cluster, &software, &plan}, exchange, {}, Pass::training)
        .front();
  }
};

}  // namespace

TEST_CASE("exchanges in pieces hide beside products in pieces, but for the last scatter") {
  Stack stack;
  const TaskCost whole = stack.cost().forward;
  CHECK(whole.tp_s == Approx(4 * 2 * (kGather + kScatter)));
  stack.software.streams.tp_pieces = true;
  const TaskCost cut = stack.cost().forward;
  CHECK(cut.tp_s == Approx(4 * 2 * kScatter / 4));
  // No work is lost, and 512 rows at a time take longer than 2,048 at once.
  CHECK(cut.flops == Approx(whole.flops));
  CHECK(cut.busy.total() > 1.01 * whole.busy.total());
  CHECK(cut.busy.total() < 1.1 * whole.busy.total());
  // Four products of a layer in four pieces each.
  stack.software.streams.tp_piece_gap = seconds(10e-6);
  CHECK(stack.cost().forward.busy.total() == Approx(cut.busy.total() + 4 * 4 * 4 * 10e-6));
}

TEST_CASE("gathers before a backward product go round the ring, weights' gradients stay whole") {
  Stack stack;
  const PassCost whole = stack.cost();
  stack.software.streams.tp_pieces = true;
  const PassCost cut = stack.cost();
  CHECK(whole.backward.tp_s == Approx(4 * 2 * (kGather + kScatter)));
  CHECK(cut.backward.tp_s == Approx(4 * 2 * kScatter));  // they follow the weights' gradients here
  CHECK(cut.backward.flops == Approx(whole.backward.flops));
}

TEST_CASE("with delayed scaling a pass ends with an agreement on scales, which other precisions have none of") {
  Stack stack;
  stack.training.precision = Precision::fp8;
  const PassCost without = stack.cost();
  stack.software.streams.amax_waits = true;
  const PassCost with = stack.cost();
  CHECK(with.forward.dp_s == Approx(without.forward.dp_s + kAmax));
  CHECK(with.backward.dp_s == Approx(without.backward.dp_s + kAmax));
  // Two small kernels beside it, whatever the layers are.
  CHECK(with.forward.device_s() - without.forward.device_s() < kAmax + 10e-6);
  stack.software.kernels.current_scaling = true;
  const double scaled = stack.cost().forward.dp_s;
  stack.training.precision = Precision::bf16;
  CHECK(scaled == Approx(stack.cost().forward.dp_s));
}

TEST_CASE("biases that activation and residual add have sums of their own") {
  Stack stack;
  const auto sums = [&] {
    double bytes = 0;
    for (const Operation& o : layer_operations(stack.network, stack.training, stack.plan, stack.software).backward)
      if (o.name.find("biases' gradients") != std::string::npos) bytes += o.bytes;
    return bytes;
  };
  CHECK(sums() == 0);
  stack.software.kernels.bias_sums = true;
  // The MLP's inner tokens x 12,288 of this rank, and twice a quarter of the tokens x 12,288, in BF16.
  CHECK(sums() == Approx(2 * 2048 * 12288.0 * 1.5));
  stack.network.biases = false;
  CHECK(sums() == 0);
}
