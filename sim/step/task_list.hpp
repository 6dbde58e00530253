// Tasks of a visit in the order in which the host issues them, with what each waits for.
#pragma once

#include <vector>

#include "step/streams.hpp"
#include "workload/operations.hpp"

namespace tw {

// An operation of a layer with its times.
struct TimedOperation {
  Task task;
  Exchange exchange = Exchange::none;
  bool weight = false;     // gradient of weights alone
  bool attention = false;  // what a ring of context-parallel ranks works on piece by piece
  double part_s = 0;       // length of one of the pieces
  double parameters = 0;   // whose gradient it is
  double launches = 0;
  bool beside = false;  // an exchange that the next kernel need not wait for
  bool met = false;     // an exchange that a later kernel waits for; a kernel that waits for the oldest of these
};

// An exchange of data-parallel ranks: its length without kernels running, and with.
struct TravelTime {
  double alone_s = 0, beside_s = 0;
  Exchange load = Exchange::none;  // of the engine (Task)
  double bytes = 0;                // of that load, where a visit plays it
};

class TaskList {
 public:
  // `cp`: context-parallel ranks. `scatter_first`: the scatter of an input's gradient is issued before the products of
  // the weights' gradients.
  TaskList(int cp, bool scatter_first) : cp_(cp), scatter_first_(scatter_first) {}

  // Appends operations: those that give gradients of weights alone, and the others.
  void add(const std::vector<TimedOperation>& list, bool inputs = true, bool weights = true);
  void add(const TimedOperation& operation, bool inputs = true, bool weights = true);
  // A copy on the compute stream, after an exchange; of no length: the stream waits.
  int copy(double length_s, int after, double host_s = 0);
  // An exchange that the compute stream does not wait for.
  int beside(Stream stream, const TravelTime& travel, int after, double host_s = 0);

  std::vector<Task> tasks;
  double flops = 0, launches = 0;

 private:
  int push(const Task& t, double count);
  int kernel(const TimedOperation& t);
  void exchange(const TimedOperation& t);
  void attention(const TimedOperation& t);

  int cp_;
  bool scatter_first_;
  int last_ = -1, main_ = -1, pending_ = -1;  // last kernel; the last that is no weights' gradient; an exchange
  std::vector<int> under_way_;                // exchanges that are to be met
  std::vector<TimedOperation> ring_;          // rounds of the ring that the next attention goes through
};

}  // namespace tw
