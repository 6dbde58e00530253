#include "step/step_kernels.hpp"

#include <algorithm>

#include "core/outputs.hpp"
#include "step/chunk_program.hpp"
#include "workload/pattern.hpp"

namespace tw {
namespace {

double moved_bytes(const Operation& o) {
  if (o.kind == OperationKind::gemm) {
    const double each = type_of(o.precision).operand_bytes;
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

}  // namespace

void StepKernel::describe(Outputs<StepKernel>& d) {
  d.output("name", &StepKernel::name);
  d.output("backward", &StepKernel::backward);
  d.output("flops", &StepKernel::flops);
  d.output("bytes", &StepKernel::bytes);
  d.output("time_s", &StepKernel::time_s);
}

std::vector<StepKernel> step_kernels(const StepInputs& in, const Slowdown& slowdown) {
  std::vector<StepKernel> kernels;
  if (in.network == nullptr) return kernels;
  const double stages = in.plan->pp;
  const auto add = [&](const std::vector<Operation>& operations, double times, double slow) {
    for (const Operation& o : operations) {
      if (o.kind == OperationKind::exchange) continue;
      auto at = std::find_if(kernels.begin(), kernels.end(),
                             [&](const StepKernel& k) { return k.name == o.name && k.backward == o.backward; });
      if (at == kernels.end()) at = kernels.insert(at, {o.name, o.backward});
      at->flops += times * o.flops, at->bytes += times * moved_bytes(o);
      at->time_s +=
          times * kernel_time_s(o, in.cluster->node.accelerator, *in.software, slow) / in.cluster->hosts.device_speed;
    }
  };
  const auto both = [&](const LayerOperations& ops, double times) {
    add(ops.forward, times, slowdown.forward), add(ops.backward, times, slowdown.backward);
  };
  for (const auto& [kind, count] : count_kinds(layer_kinds(*in.network), 0, in.network->layers))
    both(layer_operations(*in.network, kind, *in.training, *in.plan, *in.software), count / stages);
  both(embedding_operations(*in.network, *in.training, *in.plan, *in.software), 1 / stages);
  both(head_operations(*in.network, *in.training, *in.plan, *in.software), 1 / stages);
  return kernels;
}

}  // namespace tw
