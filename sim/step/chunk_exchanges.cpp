// What a visit's exchanges take: alone, beside kernels, and beside those of another micro-batch.
#include <algorithm>
#include <array>
#include <cmath>

#include "hardware/kernels.hpp"
#include "step/chunk_program.hpp"
#include "workload/tower.hpp"

namespace tw {
namespace {

// A visit's exchanges of one kind are played in at most so many pieces: short against the visit, few against its
// layers.
constexpr size_t kMostPieces = 4;

}  // namespace

// Of the copies that tokens would need, one for each expert chosen: with a dispatcher that sends a token once to every
// node that holds some of its experts, those that cross the fabric; inside an NVLink domain once to every rank.
double ChunkProgram::sent_share() const {
  if (in_.software->streams.dispatcher == Dispatcher::all_to_all) return 1;
  const NodeType& node = in_.cluster->node;
  const double domain = static_cast<double>(node.gpus) * node.nvlink.nodes, ep = in_.plan->ep * in_.plan->expert_tp();
  const double places = ep > domain ? ep / domain : ep, chosen = in_.network->experts_per_token;
  return places * (1 - std::pow(1 - 1 / places, chosen)) / chosen;
}

// Tensor-parallel exchanges in pieces beside products in pieces (Transformer Engine's user buffers): a gather goes
// round a ring while the product works on the rows that are there, a piece a rank; a scatter of forward follows each of
// four pieces (num_splits), whose products leave some multiprocessors to it. Recipes: NVIDIA/NeMo,
// nemo/collections/llm/recipes/tp_overlap_configs/userbuffers.py. A product of few rows takes more than its part.
ChunkProgram::List ChunkProgram::in_tp_pieces(const std::vector<Operation>& operations, const List& list,
                                              double slowdown) const {
  constexpr int kPieces = 4;
  const Software& software = *in_.software;
  if (!software.streams.tp_pieces || in_.plan->tp < 2) return list;
  const int gathered = in_.plan->tp, sent = gathered - 1;
  const auto product_piece = [&](size_t i, int pieces) {
    Operation o = operations[i];
    o.m /= pieces, o.flops /= pieces;
    TimedOperation t = list[i];
    t.task.length_s =
        kernel_time_s(o, in_.cluster->node.accelerator, software, slowdown) / in_.cluster->hosts.device_speed +
        software.streams.tp_piece_gap.value();
    t.task.flops /= pieces;
    return t;
  };
  const auto exchange_piece = [&](size_t i, int pieces) {
    TimedOperation t = list[i];
    for (double* part : {&t.task.length_s, &t.task.beside_s, &t.task.bytes, &t.task.host_s}) *part /= pieces;
    return t;
  };
  const auto product = [&](size_t i) {
    return i < operations.size() && operations[i].kind == OperationKind::gemm && operations[i].groups <= 1 &&
           !operations[i].weight_gradient;
  };
  List cut;
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation& o = operations[i];
    size_t next = i + 1;
    while (next < operations.size() && operations[next].kind == OperationKind::memory) ++next;
    if (o.exchange == Exchange::tp_all_gather && product(next)) {
      for (size_t k = i + 1; k < next; ++k) cut.push_back(list[k]);  // casts, of what is sent
      TimedOperation part = exchange_piece(i, sent), piece = product_piece(next, gathered);
      part.beside = part.met = true;
      cut.insert(cut.end(), static_cast<size_t>(sent), part);
      cut.push_back(piece);
      piece.met = true;
      cut.insert(cut.end(), static_cast<size_t>(sent), piece);
      i = next;
    } else if (product(i) && !o.backward && i + 1 < operations.size() &&
               operations[i + 1].exchange == Exchange::tp_reduce_scatter) {
      for (int p = 0; p < kPieces; ++p) {
        cut.push_back(product_piece(i, kPieces));
        cut.back().task.length_s *= software.streams.tp_scatter_slowdown;
        cut.push_back(exchange_piece(i + 1, kPieces));
        cut.back().beside = p + 1 < kPieces;
      }
      ++i;
    } else {
      cut.push_back(list[i]);
    }
  }
  return cut;
}

// Delayed scaling: what a pass of a chunk has seen of largest elements is joined, all ranks of the stage agree on it in
// the order of the kernels, and scales follow from it (Transformer Engine since 1.6, pytorch/fp8.py:
// reduce_and_update_fp8_tensors, called at the end of every forward and of every backward; Megatron-Core's
// get_amax_reduction_group: tensor, context and data parallel ranks).
std::vector<Operation> ChunkProgram::scale_operations() const {
  constexpr double kAmaxBytes = 1024;  // a number for every operand of a stage's layers: latency alone counts
  const Software& s = *in_.software;
  if (!s.streams.amax_waits || s.kernels.current_scaling || in_.training->precision != Precision::fp8) return {};
  Operation join, reduce, update;
  join.name = "join largest elements", update.name = "update scales", reduce.name = "agree on largest elements";
  join.bytes = update.bytes = reduce.bytes = kAmaxBytes;
  reduce.kind = OperationKind::exchange;
  reduce.activity = Activity::collective;
  reduce.exchange = Exchange::amax_reduce;
  return {join, reduce, update};
}

double ChunkProgram::copy_s(double bytes) const {
  if (bytes <= 0) return 0;
  return memory_time_s(in_.cluster->node.accelerator, bytes, in_.software->kernels.memory_efficiency) /
         in_.cluster->hosts.device_speed;
}

// The other direction of another micro-batch is joined: what each waits for all-to-alls is filled with the kernels of
// both, which the exchanges lengthen.
void ChunkProgram::join(TaskCost& forward, TaskCost& backward) const {
  const double waits_s = forward.ep_s + backward.ep_s, kernels_s = forward.busy.total() + backward.busy.total();
  if (!in_.software->streams.dispatch_beside || waits_s <= 0) return;
  const double hidden = std::min(1.0, kernels_s / waits_s), slower = in_.software->streams.kernel_beside_exchange - 1;
  const std::array<TaskCost*, 2> both{&forward, &backward};
  const std::array<double, 2> waited_s{forward.ep_s, backward.ep_s}, apart_s{forward.device_s(), backward.device_s()};
  for (TaskCost* c : both) {
    const double beside_s = c->ep_s * hidden;
    c->ep_s -= beside_s;
    c->busy[Activity::collective] += beside_s * slower;
    c->busy.beside += beside_s;
  }
  // All-to-alls of both fill the time of both evenly; what kernels have over hides what they may take longer.
  const double joined_s = forward.device_s() + backward.device_s(), room = std::max(0.0, kernels_s / waits_s - 1);
  for (size_t i = 0; i < both.size(); ++i)
    for (VisitExchange& x : both[i]->shared) {
      x.begin_s *= both[i]->device_s() / apart_s[i];
      if (stream_of(x.what) != Stream::ep || waited_s[i] <= 0) continue;
      const double share = waits_s * both[i]->device_s() / joined_s / waited_s[i];
      x.bytes *= share, x.alone_s *= share;
      x.slack_s += room * x.waited_s * share;
      x.waited_s *= share * (1 - hidden);
    }
}

// An exchange inside an NVLink domain is held up by kernels beside it (reference/gpu_lab/interference.csv); one that
// waits for the fabric has time to spare on the accelerator.
double ChunkProgram::beside_s(Exchange what, double bytes, double alone_s) const {
  const bool twice =
      what == Exchange::tp_all_reduce || what == Exchange::outer_reduce ||
      (in_.plan->sharding == Sharding::none && (what == Exchange::gradient_reduce || what == Exchange::expert_reduce));
  const NvlinkDomain& domain = in_.cluster->node.nvlink;
  const double inside_s = (twice ? 2 : 1) * bytes / (domain.reached_share * domain.bandwidth.value());
  return std::max(alone_s, in_.software->streams.exchange_beside_kernel * std::min(alone_s, inside_s));
}

TravelTime ChunkProgram::travel(Exchange dense, Exchange experts, const SharedSum& bytes) const {
  TravelTime t;
  for (const auto& [what, size] : {std::pair{dense, bytes.dense}, std::pair{experts, bytes.experts}}) {
    if (size <= 0) continue;
    const double alone_s = exchange_s(what, size);
    t.alone_s += alone_s;
    t.beside_s += beside_s(what, size, alone_s);
  }
  if (shared_.empty()) return t;
  t.load = dense;
  // Experts' parameters go with the others.
  const auto links = shared_.find(dense);
  if (links != shared_.end() && links->second > 0)
    t.bytes = bytes.experts > 0 ? t.alone_s / links->second : bytes.dense;
  return t;
}

Stream stream_of(Exchange e) {
  switch (e) {
    case Exchange::cp_exchange:
    case Exchange::cp_all_gather:
    case Exchange::cp_reduce_scatter:
    case Exchange::cp_all_to_all:
      return Stream::cp;
    case Exchange::ep_all_to_all:
    case Exchange::expert_tp_gather:
    case Exchange::expert_tp_scatter:
    case Exchange::expert_tp_reduce:
      return Stream::ep;
    case Exchange::tp_all_gather:
    case Exchange::tp_reduce_scatter:
    case Exchange::tp_all_reduce:
      return Stream::tp;
    case Exchange::amax_reduce:
      return Stream::dp_outer;  // a communicator of its own, as well
    default:
      return Stream::dp;
  }
}

std::vector<VisitExchange> visit_exchanges(const std::vector<Task>& tasks, const Played& alone,
                                           const SharedExchanges& shared) {
  // The first kernel that needs each task, and when the kernel before it is done.
  std::vector<int> needed_by(tasks.size(), -1);
  std::vector<double> before_s(tasks.size(), 0);
  double done_s = 0;
  for (size_t j = 0; j < tasks.size(); ++j) {
    if (tasks[j].stream != Stream::compute) continue;
    for (const int k : {tasks[j].after, tasks[j].also_after})
      if (k >= 0 && needed_by[static_cast<size_t>(k)] < 0)
        needed_by[static_cast<size_t>(k)] = static_cast<int>(j), before_s[static_cast<size_t>(k)] = done_s;
    done_s = alone.done_s[j];
  }
  std::vector<VisitExchange> found;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto links = shared.find(tasks[i].load);
    const double length_s = alone.done_s[i] - alone.begin_s[i];
    if (links == shared.end() || !(tasks[i].bytes > 0) || !(length_s > 0)) continue;
    VisitExchange x{
        tasks[i].load, tasks[i].bytes, alone.begin_s[i], 0, 0, std::max(0.0, alone.end_s - alone.done_s[i])};
    x.alone_s = std::min(length_s, x.bytes * links->second);
    if (const int j = needed_by[i]; j >= 0) {  // when it could have begun without the exchange
      double ready_s = before_s[i];
      for (const int k : {tasks[static_cast<size_t>(j)].after, tasks[static_cast<size_t>(j)].also_after})
        if (k >= 0 && k != static_cast<int>(i)) ready_s = std::max(ready_s, alone.done_s[static_cast<size_t>(k)]);
      x.slack_s = std::max(0.0, ready_s - alone.done_s[i]);
    }
    if (x.slack_s <= 0) x.waited_s = x.alone_s;
    found.push_back(x);
  }
  return found;
}

std::vector<VisitExchange> in_pieces(const std::vector<VisitExchange>& all) {
  std::map<Exchange, std::vector<VisitExchange>> of_kind;
  for (const VisitExchange& x : all) of_kind[x.what].push_back(x);
  std::vector<VisitExchange> pieces;
  for (const auto& [what, list] : of_kind) {
    const size_t each = (list.size() + kMostPieces - 1) / kMostPieces;
    for (size_t i = 0; i < list.size(); ++i) {
      if (i % each == 0) {
        pieces.push_back(list[i]);
        continue;
      }
      VisitExchange& p = pieces.back();
      p.bytes += list[i].bytes;
      p.alone_s += list[i].alone_s;
      p.waited_s += list[i].waited_s;
      p.slack_s += list[i].slack_s;
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const VisitExchange& a, const VisitExchange& b) { return a.begin_s < b.begin_s; });
  return pieces;
}

// Layers alike of a tower are timed once.
void ChunkProgram::time_embedding(const Software& software, const Slowdown& slowdown) {
  const LayerOperations table = table_operations(*in_.network, *in_.training, *in_.plan, software);
  const auto towers = tower_stretches(*in_.network, *in_.training, *in_.plan, software);
  const auto append = [](List& to, const List& one, int times) {
    for (int i = 0; i < times; ++i) to.insert(to.end(), one.begin(), one.end());
  };
  for (const TowerStretch& one : towers) append(embed_, timed(one.operations.forward, slowdown.forward), one.times);
  append(embed_, timed(table.forward, slowdown.forward), 1);
  if (pass_ == Pass::evaluation) return;
  embed_back_ = timed(table.backward, slowdown.backward);
  for (auto one = towers.rbegin(); one != towers.rend(); ++one)
    append(embed_back_, timed(one->operations.backward, slowdown.backward), one->times);
}

}  // namespace tw
