#include "step/cost.hpp"

#include <algorithm>
#include <map>

#include "hardware/kernels.hpp"
#include "workload/memory.hpp"
#include "workload/pattern.hpp"

namespace tw {

TaskCost& TaskCost::operator+=(const TaskCost& o) {
  busy += o.busy;
  tp_s += o.tp_s, cp_s += o.cp_s, ep_s += o.ep_s, dp_s += o.dp_s, gap_s += o.gap_s, host_s += o.host_s;
  flops += o.flops;
  return *this;
}

TaskCost TaskCost::scaled(double f) const {
  TaskCost c;
  c.busy = busy.scaled(f);
  c.tp_s = tp_s * f, c.cp_s = cp_s * f, c.ep_s = ep_s * f, c.dp_s = dp_s * f;
  c.gap_s = gap_s * f, c.host_s = host_s * f, c.flops = flops * f;
  return c;
}

PassCost& PassCost::operator+=(const PassCost& o) {
  forward += o.forward;
  backward += o.backward;
  return *this;
}

namespace {

double kernel_time_s(const Operation& o, const Accelerator& a, const Software& software, double slowdown) {
  switch (o.kind) {
    case OperationKind::gemm: {
      if (o.groups > 1)
        return slowdown * grouped_gemm_time_s(a, o.precision, o.groups, o.m, o.n, o.k, o.weight_gradient);
      const double split = is_scaled(o.precision) && o.backward ? software.fp8_backward_slowdown : 1;
      return slowdown * split * gemm_time_s(a, o.precision, o.m, o.n, o.k);
    }
    case OperationKind::attention: {
      // FP8 attention kernels gain about as much over BF16 as their higher peak allows in practice.
      const double fp8 = is_scaled(o.precision) ? software.fp8_attention_speedup : 1;
      const double t =
          o.backward ? attention_backward_time_s(a, o.attention) : attention_forward_time_s(a, o.attention);
      return slowdown * t / (fp8 * software.attention_speed);
    }
    case OperationKind::memory:
      if (o.norm) return memory_time_s(a, o.bytes, a.norm_bandwidth.value() / a.copy_bandwidth.value());
      return memory_time_s(a, o.bytes, software.memory_efficiency);
    case OperationKind::exchange:
      break;
  }
  return 0;
}

}  // namespace

TaskCost cost_of(const std::vector<Operation>& operations, const StepInputs& in, const ExchangeTime& exchange,
                 double slowdown, Pass pass) {
  const Software& software = *in.software;
  const Hosts& hosts = in.cluster->hosts;
  const bool graphs = pass == Pass::training ? software.graphs_training : software.graphs_evaluation;
  TaskCost cost;
  double launches = 0, collectives = 0;  // backward ones count by what they cost
  for (const Operation& o : operations) {
    const double host = o.backward ? software.host_backward : 1;
    if (o.kind == OperationKind::exchange) {
      collectives += host;
      const double t = exchange(o.exchange, o.bytes);
      switch (o.exchange) {
        case Exchange::tp_all_gather:
        case Exchange::tp_reduce_scatter:
          cost.tp_s += t * (1 - software.tp_overlap);
          break;
        case Exchange::tp_all_reduce:
          cost.tp_s += t;
          break;
        case Exchange::cp_all_gather:
        case Exchange::cp_reduce_scatter:
        case Exchange::cp_all_to_all:
        case Exchange::cp_exchange:
          cost.cp_s += t * (1 - software.cp_overlap);
          break;
        case Exchange::ep_all_to_all:
        case Exchange::expert_tp_gather:
        case Exchange::expert_tp_scatter:
        case Exchange::expert_tp_reduce:
          cost.ep_s += t;
          break;
        case Exchange::weight_gather:
        case Exchange::gradient_reduce:
        case Exchange::expert_gather:
        case Exchange::expert_reduce:
        case Exchange::none:
          break;
      }
    } else {
      launches += host * o.launches;
      cost.flops += o.flops;
      cost.busy[o.activity] += kernel_time_s(o, in.cluster->node.accelerator, software, slowdown) / hosts.device_speed;
    }
  }
  // A graph replays a whole layer with one launch.
  cost.host_s =
      graphs ? software.host_per_operation.value()
             : launches * software.host_per_operation.value() + collectives * software.host_per_collective.value();
  cost.host_s /= hosts.launch_speed;
  return cost;
}

namespace {

// What data parallelism does beside and inside the passes of a chunk, on average over the step's micro-batches.
void add_data_parallel_cost(PassCost& cost, int chunk, const std::vector<ParameterGroup>& groups, const StepInputs& in,
                            const ExchangeTime& exchange) {
  const Plan& plan = *in.plan;
  const Software& s = *in.software;
  const Accelerator& a = in.cluster->node.accelerator;
  const SharedSum gradients = exchanged_gradients(in, groups, chunk);
  const auto copies_s = [&](double bytes) {
    return bytes <= 0 ? 0 : memory_time_s(a, bytes, s.memory_efficiency) / in.cluster->hosts.device_speed;
  };
  const auto both_s = [&](Exchange dense, Exchange experts, const SharedSum& bytes) {
    return (bytes.dense > 0 ? exchange(dense, bytes.dense) : 0) +
           (bytes.experts > 0 ? exchange(experts, bytes.experts) : 0);
  };
  double beside_s = 0;  // exchange that runs along with backward
  if (s.kernel_interference > 0)
    beside_s = both_s(Exchange::gradient_reduce, Exchange::expert_reduce, gradients) / plan.ga();
  if (plan.sharding == Sharding::zero3) {
    const SharedSum weights = gathered_bytes(groups, chunk);
    const double gather_s = both_s(Exchange::weight_gather, Exchange::expert_gather, weights);
    for (TaskCost* pass : {&cost.forward, &cost.backward}) {
      // Without resharding weights are gathered once a step, for the first forward.
      const double share = reshards(plan) ? 1 : pass == &cost.forward ? 1.0 / plan.ga() : 0;
      pass->dp_s += share * gather_s * (1 - s.gather_overlap);
      pass->busy[Activity::copy] += share * copies_s(s.gather_copy_passes * weights.total());
      pass->dp_s += share * s.kernel_interference * gather_s * s.gather_overlap;
    }
    cost.backward.busy[Activity::copy] += copies_s(s.gather_copy_passes * gradients.total()) / plan.ga();
  } else if (plan.sharding == Sharding::none) {
    cost.backward.busy[Activity::copy] += copies_s(s.gradient_copy_passes * gradients.total()) / plan.ga();
  }
  cost.backward.dp_s += s.kernel_interference * std::min(beside_s, cost.backward.busy.total());
}

}  // namespace

std::vector<PassCost> chunk_costs(const StepInputs& in, const ExchangeTime& exchange, const Slowdown& slowdown,
                                  Pass pass) {
  const auto cost = [&](const LayerOperations& ops) {
    return PassCost{cost_of(ops.forward, in, exchange, slowdown.forward, pass),
                    cost_of(ops.backward, in, exchange, slowdown.backward, pass)};
  };
  const auto kinds = layer_kinds(*in.network);
  std::map<LayerKind, PassCost> of_kind;
  for (const LayerKind& kind : kinds)
    if (of_kind.find(kind) == of_kind.end())
      of_kind[kind] = cost(layer_operations(*in.network, kind, *in.training, *in.plan, *in.software));
  std::vector<PassCost> chunks;
  int first = 0;
  for (const int n : layers_of_chunks(in.network->layers, *in.plan)) {
    chunks.emplace_back();
    for (const auto& [kind, times] : count_kinds(kinds, first, n))
      chunks.back() += {of_kind[kind].forward.scaled(times), of_kind[kind].backward.scaled(times)};
    first += n;
  }
  const auto groups = groups_of(in);
  for (size_t c = 0; c < chunks.size() && pass == Pass::training; ++c) {
    add_data_parallel_cost(chunks[c], static_cast<int>(c), groups, in, exchange);
    if (in.plan->pp > 1)
      for (TaskCost* visit : {&chunks[c].forward, &chunks[c].backward})
        visit->gap_s += in.software->pipeline_visit.value();
  }
  chunks.front() += cost(embedding_operations(*in.network, *in.training, *in.plan, *in.software));
  chunks.back() += cost(head_operations(*in.network, *in.training, *in.plan, *in.software));
  return chunks;
}

TaskCost optimizer_cost(const StepInputs& in) {
  TaskCost cost;
  if (in.network == nullptr) return cost;
  const Plan& plan = *in.plan;
  std::vector<double> updated(static_cast<size_t>(plan.pp), 0.0);  // parameters of a rank of each stage
  for (const ParameterGroup& g : groups_of(in))
    if (g.trained)
      updated[static_cast<size_t>(g.chunk % plan.pp)] += g.held / (plan.sharding == Sharding::none ? 1 : g.shards);
  // Gradient read, two moments and master weight read and written, weight written.
  const double bytes = in.software->optimizer_bytes_per_parameter * *std::max_element(updated.begin(), updated.end());
  cost.busy[Activity::memory_bound] =
      memory_time_s(
          in.cluster->node.accelerator, bytes,
          in.software->optimizer_efficiency > 0 ? in.software->optimizer_efficiency : in.software->memory_efficiency) /
      in.cluster->hosts.device_speed;
  return cost;
}

std::vector<ParameterGroup> groups_of(const StepInputs& in) {
  return parameter_groups(*in.network, *in.training, *in.plan, *in.software,
                          layers_of_chunks(in.network->layers, *in.plan));
}

SharedSum exchanged_gradients(const StepInputs& in, const std::vector<ParameterGroup>& groups, int chunk) {
  SharedSum bytes;
  for (const ParameterGroup& g : groups)
    if (g.trained && g.chunk == chunk && g.shards > 1)
      bytes.of(g) += g.held * in.software->gradient_bytes_per_parameter;
  return bytes;
}

}  // namespace tw
