// Stacks of layers as eager PyTorch trains them: kernels unfused, weights sharded, gradients freed.
#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "step/cost.hpp"
#include "workload/memory.hpp"
#include "workload/operations.hpp"
#include "workload/parameters.hpp"

using namespace tw;

namespace {

struct Lab {
  Architecture network = load<Architecture>("models/networks/llama-layers.json");
  Software software = load<Software>("models/software/pytorch-eager-2.11.json");
  Cluster cluster;
  Training training;
  Plan plan;
  Lab() {
    training.sequence = 4096;
    plan.sequence_parallel = false;
    plan.dp = 2;
    plan.gbs = 2;
    cluster.node.accelerator = load<Accelerator>("models/accelerators/h200-sxm.json");
  }
  StepInputs inputs() const { return {&network, &training, nullptr, &cluster, &software, &plan}; }
  std::vector<PassCost> chunks(double gather_s, double reduce_s) const {
    const auto exchange = [=](Exchange what, double) {
      return what == Exchange::weight_gather ? gather_s : what == Exchange::gradient_reduce ? reduce_s : 0.0;
    };
    return chunk_costs(inputs(), exchange, {}, Pass::training);
  }
  StageMemory memory() const {
    return memory_of_stages(network, training, plan, software, {network.layers}, {StageWork{}}).front();
  }
};

double bytes_of(const std::vector<Operation>& operations, const std::string& name) {
  double sum = 0;
  for (const Operation& o : operations)
    if (o.name == name) sum += o.bytes;
  return sum;
}

}  // namespace

TEST_CASE("a stack without vocabulary has neither embedding nor head") {
  const Lab lab;
  CHECK(embedding_operations(lab.network, lab.training, lab.plan, lab.software).forward.empty());
  CHECK(head_operations(lab.network, lab.training, lab.plan, lab.software).backward.empty());
  for (const ParameterGroup& g : parameter_groups(lab.network, lab.training, lab.plan, lab.software, {8}))
    CHECK(g.kind != ParameterKind::embedding);
  CHECK(network_parameters(lab.network) ==
        Approx(lab.network.layers * layer_parameters(lab.network) + 4096).epsilon(1e-12));
}

TEST_CASE("eager SwiGLU moves five tensors forward, as the laboratory's bytes say") {
  Lab lab;
  const auto eager = layer_operations(lab.network, lab.training, lab.plan, lab.software);
  CHECK(bytes_of(eager.forward, "SwiGLU") == Approx(5 * 2.0 * 4096 * 14336));
  lab.software.kernels.eager_elementwise = false;
  const auto fused = layer_operations(lab.network, lab.training, lab.plan, lab.software);
  CHECK(bytes_of(fused.forward, "SwiGLU") == Approx(3 * 2.0 * 4096 * 14336));
}

TEST_CASE("later micro-batches add their gradients to the first one's") {
  Lab lab;
  const auto one = layer_operations(lab.network, lab.training, lab.plan, lab.software);
  CHECK(bytes_of(one.backward, "gradient accumulation") == 0);
  lab.plan.gbs = 8;
  const auto four = layer_operations(lab.network, lab.training, lab.plan, lab.software);
  CHECK(bytes_of(four.backward, "gradient accumulation") == Approx(6 * layer_parameters(lab.network)));
}

TEST_CASE("ZeRO-3 gathers the next layer's weights while one computes") {
  Lab lab;
  lab.software.streams.kernel_beside_exchange = lab.software.streams.exchange_beside_kernel = 1;
  lab.software.kernels.gather_copy_passes = lab.software.kernels.gradient_copy_passes = 0;
  const PassCost plain = lab.chunks(0, 0).front();
  CHECK(plain.forward.dp_s == 0);
  const double layers = lab.network.layers, layer_s = plain.forward.device_s() / layers;
  lab.plan.sharding = Sharding::zero3;
  // Short gathers show at the first layer alone, long ones set the pace.
  const double short_s = 0.2 * layer_s, long_s = 3 * layer_s;
  CHECK(lab.chunks(short_s, 0).front().forward.device_s() == Approx(layers * layer_s + short_s).epsilon(1e-9));
  CHECK(lab.chunks(long_s, 0).front().forward.device_s() == Approx(layers * long_s + layer_s).epsilon(1e-9));
  // In backward the scatter of the last layer shows, and the gather of the first.
  const double back_s = plain.backward.device_s();
  const PassCost scatters = lab.chunks(short_s, short_s).front();
  CHECK(scatters.backward.device_s() == Approx(back_s + 2 * short_s).epsilon(1e-9));
  // The hooks of sharded layers cost their host time.
  CHECK(scatters.forward.host_s > plain.forward.host_s + layers * lab.software.host.shard_forward.value() * 0.99);
  // Sharding the optimizer divides its work.
  const double whole = [&] {
    Lab none;
    return optimizer_cost(none.inputs()).device_s();
  }();
  CHECK(optimizer_cost(lab.inputs()).device_s() == Approx(whole / 2));
}

TEST_CASE("plain data parallelism sends its gradients in buckets while backward runs") {
  Lab lab;
  const PassCost cost = lab.chunks(0, 1e-3).front();
  double bytes = 0, before = 0;
  for (const Bucket& b : cost.buckets) {
    CHECK(b.share >= before);
    CHECK(b.stretch >= 1);
    before = b.share;
    bytes += b.bytes.total();
  }
  CHECK(cost.buckets.size() > 8);
  CHECK(cost.buckets.front().share < 0.2);
  CHECK(bytes == Approx(2 * lab.network.layers * layer_parameters(lab.network)).epsilon(1e-3));
  // Kernels beside the exchange take longer, and gradients are copied into the buckets.
  CHECK(cost.last_backward.device_s() > cost.backward.device_s());
}

TEST_CASE(
    "memory: ZeRO-3 halves weights and states on two ranks; gradients of one micro-batch come as activations go") {
  Lab lab;
  const double parameters = lab.network.layers * layer_parameters(lab.network);
  const StageMemory plain = lab.memory();
  CHECK(plain.weights == Approx(2 * parameters));
  CHECK(plain.optimizer == Approx(4 * parameters));
  // At the peak, early in backward: the buckets, and the first product's gradient.
  CHECK(plain.gradients == Approx(2 * parameters + 2.0 * 4096 * 14336));
  lab.plan.sharding = Sharding::zero3;
  const StageMemory sharded = lab.memory();
  CHECK(sharded.weights == Approx(parameters));
  CHECK(sharded.optimizer == Approx(2 * parameters));
  // One layer whole, and the one before it in the buffer of its gather.
  CHECK(sharded.gathered == Approx(2 * 2 * layer_parameters(lab.network)).epsilon(1e-3));
  // Several micro-batches keep their gradients.
  lab.plan.sharding = Sharding::none;
  lab.plan.gbs = 8;
  CHECK(lab.memory().gradients == Approx(4 * parameters));
}

TEST_CASE("eager rotary positions go through FP32, and keys and values are copied for every head") {
  Lab lab;
  lab.network.rotary = true;
  const auto eager = layer_operations(lab.network, lab.training, lab.plan, lab.software);
  const double tokens = 4096;
  CHECK(bytes_of(eager.forward, "rotary") == Approx(27.4 * tokens * (4096 + 1024)));
  CHECK(bytes_of(eager.forward, "heads of keys and values") == 4 * tokens * (4096 + 1024));
  lab.software.kernels.eager_elementwise = false;
  CHECK(bytes_of(layer_operations(lab.network, lab.training, lab.plan, lab.software).forward, "rotary") ==
        4 * tokens * (4096 + 1024));
}

TEST_CASE("norms as chains take the bytes that were measured, and only eager ones are chains") {
  Lab lab;
  const auto both = [&] { return layer_operations(lab.network, lab.training, lab.plan, lab.software); };
  const auto total = [](const std::vector<Operation>& list) {
    double bytes = 0;
    for (const Operation& o : list) bytes += o.bytes;
    return bytes;
  };
  const double elements = 2 * 4096.0 * 4096, forward = total(both().forward), backward = total(both().backward);
  lab.software.kernels.composite_norms = true;
  // reference/gpu_lab_10/eager_kernels.csv, beside the 4 and 6 bytes of one kernel.
  CHECK(total(both().forward) - forward == Approx((57 - 4) * elements));
  CHECK(total(both().backward) - backward == Approx((118 - 6 / lab.software.kernels.norm_backward_speed) * elements));
  lab.software.kernels.eager_elementwise = false;
  const double fused = total(both().forward);
  lab.software.kernels.composite_norms = false;
  CHECK(total(both().forward) == fused);
}

TEST_CASE("attention in parts: every score goes through memory, and four rows of heads share a softmax") {
  Lab lab;
  lab.software.kernels.fused_attention = false;
  const double scores = 32 * 4096.0 * 4096;
  const auto parts = layer_operations(lab.network, lab.training, lab.plan, lab.software);
  CHECK(bytes_of(parts.forward, "softmax") == 4 * scores);
  CHECK(bytes_of(parts.backward, "softmax gradient") == 6 * scores);
  CHECK(bytes_of(parts.forward, "attention dropout") == 0);
  double flops = 0;  // nothing of a causal mask is spared
  for (const Operation& o : parts.forward)
    if (o.groups > 1) flops += o.flops;
  CHECK(flops == 2 * 2 * scores * 128);
  const double fused_bytes = lab.memory().total();
  lab.network.dropout = 0.1;
  CHECK(bytes_of(layer_operations(lab.network, lab.training, lab.plan, lab.software).forward, "attention dropout") ==
        5 * scores);
  CHECK(lab.memory().total() > fused_bytes + 3 * scores);
  // Two rows: casts, scaling and mask by themselves.
  lab.plan.tp = 16;
  CHECK(bytes_of(layer_operations(lab.network, lab.training, lab.plan, lab.software).forward, "softmax in parts") ==
        36 * scores / 16);
}

TEST_CASE("a traced kernel is followed by a gap") {
  Lab lab;
  lab.plan.dp = lab.plan.gbs = 1;
  const PassCost plain = lab.chunks(0, 0).front();
  lab.software.host.traced_gap = seconds(1e-3);
  const PassCost traced = lab.chunks(0, 0).front();
  CHECK(traced.forward.device_s() - plain.forward.device_s() == Approx(plain.forward.launches * 1e-3).epsilon(0.02));
}
