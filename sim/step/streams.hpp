// The streams of one accelerator: kernels and exchanges that its host issues in order, each waiting for its own stream
// and for what it depends on. What overlaps follows from that; nothing here says how well anything hides.
#pragma once

#include <string_view>
#include <vector>

#include "hardware/activity.hpp"
#include "workload/operations.hpp"

namespace tw {

// Queues of work. A communicator of the collective library is one queue, whatever stream its calls came from.
// Copies to and from the host's memory have an engine each, which slows down neither kernels nor exchanges.
enum class Stream { compute, tp, cp, ep, dp, dp_outer, to_host, from_host, count_ };
constexpr size_t kStreams = static_cast<size_t>(Stream::count_), kCopyStreams = static_cast<size_t>(Stream::to_host);

// One piece of work. `after` and `also_after` are tasks that have to be done before it begins, beside those of its own
// stream; -1: none.
struct Task {
  std::string_view name;  // a literal; empty: what its stream carries
  Stream stream = Stream::compute;
  Activity activity = Activity::memory_bound;
  double length_s = 0;  // alone
  double host_s = 0;    // the host needs to issue it
  double flops = 0;
  double bytes = 0;  // of an exchange
  int after = -1, also_after = -1;
  double beside_s = 0;      // of an exchange: its length while kernels run, at least length_s
  bool stops_host = false;  // the host issues nothing more before it is done
  // Of an exchange that is a load of the fabric engine: which one. Two of them share links there, not here.
  Exchange load = Exchange::none;
};

// What came of a list of tasks.
struct Played {
  double end_s = 0;       // the compute stream is done
  double host_end_s = 0;  // the host has issued everything; long before 0 where nothing stopped it
  // Of the compute stream. A kernel beside an exchange does its own work more slowly: what it takes longer, the
  // accelerator works for the exchange.
  ActivityTimes busy;
  double waited_s[kStreams] = {};       // of the compute stream for exchanges of a stream
  double host_wait_s = 0;               // and for the host,
  double host_exchange_s = 0;           // while an exchange ran all the same
  std::vector<double> begin_s, done_s;  // of each task
};

// Plays the tasks from time 0. `kernel_beside`: time of a kernel while an exchange runs over that alone. Without `host`
// the host has issued long before what it can: everything, or all up to the first task that stops it.
Played play(const std::vector<Task>& tasks, double kernel_beside, bool host);

}  // namespace tw
