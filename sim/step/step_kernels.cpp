#include "step/step_kernels.hpp"

#include <algorithm>

#include "core/outputs.hpp"
#include "hardware/kernels.hpp"
#include "step/chunk_program.hpp"
#include "workload/pattern.hpp"

namespace tw {
namespace {

double moved_bytes(const Operation& o) {
  if (o.kind == OperationKind::gemm) {
    const double each = o.precision.operand_bytes;
    // Results are BF16 whatever the operands are.
    return o.groups * (each * (o.m * o.k + o.k * o.n) + 2 * o.m * o.n);
  }
  if (o.kind == OperationKind::attention) {
    const AttentionShape& a = o.attention;
    // Backward reads these and the output's gradient, and writes three gradients.
    return (o.backward ? 2 : 1) * 2 * a.batch * a.heads * a.head_dim * 2 * (a.query_tokens + a.key_tokens);
  }
  return o.bytes;
}

// A kernel starts and drains: it takes so much beyond what its bytes take at the plateau. Copies, additions,
// activations, norms, rotary positions and casts of 25 to 150 MB, median (0.8 to 3.5 us: reference/gpu_lab_2/
// memory_ops.csv; H200's alike: reference/gpu_lab/memory_ops.csv).
constexpr double kRampS = 2.2e-6;

double memory_kernels_s(const Operation& o, const Accelerator& a, const Software& software) {
  if (const double rated = software.kernels.rated_peak.value(); o.rate > 0)
    return std::max(o.launches * a.graph_floor.value(),
                    o.bytes / (rated > 0 ? o.rate * a.peak_bf16.value() / rated : o.rate));
  if (o.on_h100_s > 0) return instruction_time_s(a, o.on_h100_s, o.kernels);
  const double share =
      o.norm ? a.norm_bandwidth.value() / a.copy_bandwidth.value() : software.kernels.memory_efficiency;
  return o.launches * kRampS + memory_time_s(a, o.bytes, share) * instruction_stretch(a, o.sm_share);
}

}  // namespace

double kernel_time_s(const Operation& o, const Accelerator& a, const Software& software, double slowdown) {
  switch (o.kind) {
    case OperationKind::gemm: {
      const double split = o.precision.scaled && o.backward ? software.kernels.fp8_backward_slowdown : 1;
      const double product_s = o.groups > 1
                                   ? grouped_gemm_time_s(a, o.precision, o.groups, o.m, o.n, o.k, o.weight_gradient)
                                   : split * gemm_time_s(a, o.precision, o.m, o.n, o.k);
      if (!o.weight_gradient || !software.kernels.gradient_accumulation_fusion) return slowdown * product_s;
      constexpr double kWritten = 2;  // bytes, in BF16; the gradient is read and written instead
      const double bytes = (2 * software.memory.gradient_bytes_per_parameter - kWritten) * o.groups * o.m * o.n;
      return slowdown * accumulating_time_s(a, product_s, bytes);
    }
    case OperationKind::attention: {
      // FP8 attention kernels gain about as much over BF16 as their higher peak allows in practice.
      const double fp8 = o.precision.scaled ? software.kernels.fp8_attention_speedup : 1;
      const double t =
          o.backward ? attention_backward_time_s(a, o.attention) : attention_forward_time_s(a, o.attention);
      return slowdown * t / (fp8 * software.kernels.attention_speed);
    }
    case OperationKind::memory:
      return memory_kernels_s(o, a, software);
    case OperationKind::exchange:
      break;
  }
  return 0;
}

void StepKernel::describe(Outputs<StepKernel>& d) {
  d.output("name", &StepKernel::name);
  d.output("backward", &StepKernel::backward);
  d.output("flops", &StepKernel::flops);
  d.output("bytes", &StepKernel::bytes);
  d.output("time_s", &StepKernel::time_s);
}

std::vector<StepKernel> step_kernels(const StepInputs& in, const Slowdown& slowdown) {
  std::vector<StepKernel> kernels;
  const double stages = in.plan->pp;
  const auto add = [&](const std::vector<Operation>& operations, double times, double slow) {
    for (const Operation& o : operations) {
      if (o.kind == OperationKind::exchange) continue;
      auto at = std::find_if(kernels.begin(), kernels.end(),
                             [&](const StepKernel& k) { return k.name == o.name && k.backward == o.backward; });
      if (at == kernels.end()) at = kernels.insert(at, {std::string(o.name), o.backward});
      at->flops += times * o.flops, at->bytes += times * moved_bytes(o);
      at->time_s +=
          times * kernel_time_s(o, in.cluster->node.accelerator, *in.software, slow) / in.cluster->hosts.device_speed;
    }
  };
  const auto both = [&](const LayerOperations& ops, double times) {
    add(ops.forward, times, slowdown.forward), add(ops.backward, times, slowdown.backward);
  };
  for (const auto& [kind, count] :
       count_kinds(layers_as_trained(*in.network, *in.training, layers_of_chunks(*in.network, *in.plan)), 0,
                   in.network->layers))
    both(layer_operations(*in.network, kind, *in.training, *in.plan, *in.software), count / stages);
  both(embedding_operations(*in.network, *in.training, *in.plan, *in.software), 1 / stages);
  both(head_operations(*in.network, *in.training, *in.plan, *in.software), 1 / stages);
  return kernels;
}

}  // namespace tw
