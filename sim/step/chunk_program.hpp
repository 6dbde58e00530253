// The program of one visit: the tasks that a rank's host issues for the layers of a chunk, in order, with the
// exchanges that tensor, context, expert and data parallelism put between them.
#pragma once

#include <map>
#include <vector>

#include "step/cost.hpp"
#include "step/task_list.hpp"

namespace tw {

// Seconds of the kernels of an operation that is no exchange, at full speed of the device.
double kernel_time_s(const Operation& o, const Accelerator& a, const Software& software, double slowdown);

// What decides a chunk's program beside the layer's operations.
struct ChunkShape {
  std::vector<LayerKind> kinds;  // of the layers, in the order of forward
  bool embedding = false, head = false;
  SharedSum gathered;   // bytes of weights that ZeRO-3 gathers for a pass, or updated ones for the first forward
  SharedSum gradients;  // bytes that ranks exchange
  int layers() const { return static_cast<int>(kinds.size()); }
  bool operator==(const ChunkShape& o) const;
};

// The queue that an exchange waits in.
Stream stream_of(Exchange e);

// The exchanges of a list of tasks that the engine plays, and how long kernels wait for them when they are alone.
std::vector<VisitExchange> visit_exchanges(const std::vector<Task>& tasks, const Played& alone,
                                           const SharedExchanges& shared);
// The same in a few pieces of each kind, in the order in which they begin.
std::vector<VisitExchange> in_pieces(const std::vector<VisitExchange>& all);

// Of each chunk in turn, but for what is gathered and exchanged.
std::vector<ChunkShape> chunk_shapes(const StepInputs& in);

// Makes programs of one plan. Kernels and exchanges are timed once.
class ChunkProgram {
 public:
  ChunkProgram(const StepInputs& in, const ExchangeTime& exchange, const Slowdown& slowdown, Pass pass,
               const SharedExchanges& shared = {});

  // All visits of a chunk of this shape. `split`: the schedule runs the halves of backward apart.
  PassCost cost(const ChunkShape& shape, bool split);

  // The lists of tasks that a visit is played from, the host far ahead (visit_trace.cpp).
  struct Kept {
    std::vector<Task> tasks;
    Played played;
    int repeats = 1;
  };
  std::vector<Kept> kept(const ChunkShape& shape, bool backward);

 private:
  using List = std::vector<TimedOperation>;
  TaskList list() const { return {in_.plan->cp, in_.software->streams.scatter_beside_weights}; }
  List timed(const std::vector<Operation>& operations, double slowdown);
  void time_embedding(const Software& software, const Slowdown& slowdown);
  List in_tp_pieces(const std::vector<Operation>& operations, const List& list, double slowdown) const;
  PassCost whole_cost(const ChunkShape& shape, bool split) const;
  Played on_device(const TaskList& list) const;  // the host far ahead
  TaskCost played(const TaskList& list, const Played& device) const;
  TaskCost played(const TaskList& list) const { return played(list, on_device(list)); }
  TaskCost layers(const ChunkShape& shape, bool backward, bool inputs, bool weights) const;
  TaskCost sharded(const ChunkShape& shape, bool backward, bool inputs, bool weights) const;
  TaskCost first_forward(const ChunkShape& shape) const;
  TaskCost last(const ChunkShape& shape, bool inputs, std::vector<Bucket>& buckets) const;
  // Without times of exchanges they take none.
  double exchange_s(Exchange what, double bytes) const { return exchange_ ? exchange_(what, bytes) : 0; }
  double copy_s(double bytes) const;
  std::vector<double> host_copies_s(const ChunkShape& shape) const;  // of offloaded layers (step/host_copies.hpp)
  double sent_share() const;
  std::vector<Operation> scale_operations() const;
  void join(TaskCost& forward, TaskCost& backward) const;
  double beside_s(Exchange what, double bytes, double alone_s) const;
  // Time of an exchange by the holders of dense parameters, then by those of experts.
  TravelTime travel(Exchange dense, Exchange experts, const SharedSum& bytes) const;

  const StepInputs& in_;
  const ExchangeTime& exchange_;
  Pass pass_;
  SharedExchanges shared_;
  // The list of the l-th layer that a pass comes to.
  const List& layer(const ChunkShape& shape, int l, bool backward) const;
  struct Lists {
    List forward, backward;
  };
  std::map<LayerKind, Lists> of_kind_;
  List embed_, embed_back_, head_, head_back_;
  List scales_;              // what ends a pass where delayed FP8 scales are agreed on
  bool stops_host_ = false;  // some operation does
  std::vector<Kept>* kept_ = nullptr;
};

}  // namespace tw
