#include "step/task_list.hpp"

#include <utility>

namespace tw {

int TaskList::push(const Task& t, double count) {
  tasks.push_back(t);
  flops += t.flops;
  launches += count;
  return static_cast<int>(tasks.size()) - 1;
}

void TaskList::add(const std::vector<TimedOperation>& list, bool inputs, bool weights) {
  for (const TimedOperation& t : list) add(t, inputs, weights);
}

void TaskList::add(const TimedOperation& t, bool inputs, bool weights) {
  if (!(t.weight ? weights : inputs)) return;
  if (t.exchange == Exchange::cp_exchange)
    ring_.push_back(t);
  else if (t.attention && !ring_.empty())
    attention(t);
  else if (t.exchange != Exchange::none)
    exchange(t);
  else
    kernel(t);
}

// A kernel of the compute stream, after everything that the stream has to wait for.
int TaskList::kernel(const TimedOperation& t) {
  last_ = push(t.task, t.launches);
  tasks.back().after = std::exchange(pending_, -1);
  if (t.met && !under_way_.empty()) {
    tasks.back().also_after = under_way_.front();
    under_way_.erase(under_way_.begin());
  }
  if (!t.weight) main_ = last_;
  return last_;
}

int TaskList::copy(double length_s, int after, double host_s) {
  Task t;
  t.activity = Activity::copy;
  t.length_s = length_s;
  t.host_s = host_s;
  last_ = main_ = push(t, length_s > 0 ? 1 : 0);
  tasks.back().after = std::exchange(pending_, -1);
  tasks.back().also_after = after;
  return last_;
}

int TaskList::beside(Stream stream, const TravelTime& travel, int after, double host_s) {
  Task t;
  t.stream = stream;
  t.activity = Activity::collective;
  t.length_s = travel.alone_s;
  t.beside_s = travel.beside_s;
  t.load = travel.load;
  t.bytes = travel.bytes;
  t.after = after;
  t.host_s = host_s;
  return push(t, 1);
}

// The next kernel waits for it. It begins when its input is there: the scatter of an input's gradient need not wait for
// the gradient of the weights, where the release issues it first.
void TaskList::exchange(const TimedOperation& t) {
  const bool scatter = t.exchange == Exchange::tp_reduce_scatter || t.exchange == Exchange::tp_all_reduce;
  const int input = scatter_first_ && scatter ? main_ : last_;
  if (t.beside) {
    const int sent = push(t.task, t.launches);
    tasks.back().after = input;
    if (t.met) under_way_.push_back(sent);
    return;
  }
  pending_ = push(t.task, 1);
  tasks.back().after = input;
}

// A ring over context-parallel ranks. Forward, keys and values of the next rank travel while the kernel works on those
// that are there. Backward, each round leaves when the kernel before it has added to its gradients, and travels beside
// the next kernel; what follows waits for the last round (Transformer Engine, AttnFuncWithCPAndKVP2P).
void TaskList::attention(const TimedOperation& t) {
  const auto pieces = static_cast<size_t>(cp_);
  const bool gradients = ring_.size() == pieces;
  const int ready = last_;
  int travel = -1;
  for (size_t p = 0; p < pieces; ++p) {
    TimedOperation piece = t;
    piece.task.length_s = t.part_s;
    piece.task.flops = t.task.flops / cp_;
    piece.task.host_s = t.task.host_s / cp_;
    pending_ = travel;
    if (p < ring_.size()) {
      travel = push(ring_[p].task, 1);
      tasks.back().after = gradients ? last_ : ready;
    }
    kernel(piece);
  }
  if (gradients) pending_ = travel;
  ring_.clear();
}

}  // namespace tw
