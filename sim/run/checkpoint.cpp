#include "run/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "workload/parameters.hpp"

namespace tw {

double checkpoint_bytes(const StepInputs& in) {
  if (in.workload != nullptr) return 0;
  const double bytes = 2 + in.software->memory.optimizer_state_bytes_per_parameter;  // BF16 weights beside the states
  if (!in.training->lora) return bytes * network_parameters(*in.network);
  return bytes * adapter_parameters(*in.network, *in.training->lora);
}

CheckpointCost checkpoint_cost(const StepInputs& in, const CheckpointPlan& plan) {
  CheckpointCost cost;
  cost.bytes = plan.size.value() > 0 ? plan.size.value() : checkpoint_bytes(in);
  const Storage& storage = in.cluster->storage;
  const double nodes = in.plan->nodes, node_Bps = nodes * storage.node_bandwidth.value();
  const auto rate = [&](Bandwidth shared) {
    return node_Bps > 0 ? std::min(shared.value(), node_Bps) : shared.value();
  };
  cost.write_s = cost.bytes / rate(storage.write_bandwidth);
  cost.read_s = cost.bytes / rate(storage.read_bandwidth);
  cost.snapshot_s = cost.bytes / (nodes * in.cluster->node.gpus * plan.snapshot_bandwidth.value());
  cost.bottleneck =
      node_Bps > 0 && node_Bps < storage.write_bandwidth.value() ? "storage adapters of the nodes" : "storage";
  return cost;
}

void check_capacity(const StepInputs& in, const CheckpointPlan& plan, const std::string& scenario) {
  const double capacity = in.cluster->storage.capacity.value();
  const double bytes = checkpoint_cost(in, plan).bytes;
  if (capacity <= 0 || bytes * plan.keep <= capacity) return;
  constexpr double gigabyte = 1e9;
  throw DoesNotFit(fmt::format("{}: {} checkpoint{} of {:.4g} GB do{} not fit the storage of {}, which holds {:.4g} GB",
                               scenario, plan.keep, plan.keep == 1 ? "" : "s", bytes / gigabyte,
                               plan.keep == 1 ? "es" : "", in.cluster->name, capacity / gigabyte));
}

void CheckpointPlan::describe(Description<CheckpointPlan>& d) {
  d.object("checkpoints", "When a run saves its state, and how.");
  d.optional("interval", &CheckpointPlan::interval, "time from one checkpoint to the next");
  d.optional("every_steps", &CheckpointPlan::every_steps, "or steps from one to the next", at_least(1));
  d.optional("asynchronous", &CheckpointPlan::asynchronous,
             "training waits for the copy to host memory only; the write to storage goes on beside it");
  d.optional("size", &CheckpointPlan::size,
             "bytes of one checkpoint; absent: weights and optimizer states of the trained parameters");
  d.optional("keep", &CheckpointPlan::keep, "checkpoints that storage holds at a time", between(1, 1e6));
  d.optional("snapshot_bandwidth", &CheckpointPlan::snapshot_bandwidth,
             "of the copy from one accelerator to host memory", above(0));
}

}  // namespace tw
