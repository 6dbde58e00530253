// What a visit's exchanges take: alone, beside kernels, and beside those of another micro-batch.
#include <algorithm>
#include <cmath>

#include "step/chunk_program.hpp"

namespace tw {
namespace {

// Large exchanges reach this share of an NVLink domain's line rate (reference/gpu_lab/collectives.csv: 329 to 361 of
// 450 GB/s).
constexpr double kReachedShare = 0.78;

}  // namespace

// Of the copies that tokens would need, one for each expert chosen: with a dispatcher that sends a token once to every
// node that holds some of its experts, those that cross the fabric; inside an NVLink domain once to every rank.
double ChunkProgram::sent_share() const {
  if (in_.software->dispatcher == Dispatcher::all_to_all || in_.network == nullptr) return 1;
  const NodeType& node = in_.cluster->node;
  const double domain = static_cast<double>(node.gpus) * node.nvlink.nodes, ep = in_.plan->ep * in_.plan->expert_tp();
  const double places = ep > domain ? ep / domain : ep, chosen = in_.network->experts_per_token;
  return chosen > 0 ? places * (1 - std::pow(1 - 1 / places, chosen)) / chosen : 1;
}

// The other direction of another micro-batch is joined: what each waits for all-to-alls is filled with the kernels of
// both, which the exchanges lengthen.
void ChunkProgram::join(TaskCost& forward, TaskCost& backward) const {
  const double waits_s = forward.ep_s + backward.ep_s, kernels_s = forward.busy.total() + backward.busy.total();
  if (!in_.software->dispatch_beside || waits_s <= 0) return;
  const double hidden = std::min(1.0, kernels_s / waits_s), slower = in_.software->kernel_beside_exchange - 1;
  for (TaskCost* c : {&forward, &backward}) {
    const double beside_s = c->ep_s * hidden;
    c->ep_s -= beside_s;
    c->busy[Activity::collective] += beside_s * slower;
    c->busy.beside += beside_s;
  }
}

// An exchange inside an NVLink domain is held up by kernels beside it (reference/gpu_lab/interference.csv); one that
// waits for the fabric has time to spare on the accelerator.
double ChunkProgram::beside_s(Exchange what, double bytes, double alone_s) const {
  const bool twice =
      what == Exchange::tp_all_reduce || what == Exchange::outer_reduce ||
      (in_.plan->sharding == Sharding::none && (what == Exchange::gradient_reduce || what == Exchange::expert_reduce));
  const double inside_s = (twice ? 2 : 1) * bytes / (kReachedShare * in_.cluster->node.nvlink.bandwidth.value());
  return std::max(alone_s, in_.software->exchange_beside_kernel * std::min(alone_s, inside_s));
}

TravelTime ChunkProgram::travel(Exchange dense, Exchange experts, const SharedSum& bytes) const {
  TravelTime t;
  for (const auto& [what, size] : {std::pair{dense, bytes.dense}, std::pair{experts, bytes.experts}}) {
    if (size <= 0) continue;
    const double alone_s = exchange_(what, size);
    t.alone_s += alone_s;
    t.beside_s += beside_s(what, size, alone_s);
  }
  return t;
}

}  // namespace tw
