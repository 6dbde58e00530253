#include "step/streams.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/error.hpp"

namespace tw {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLongBefore_s = -1e9;

// Only streams that have tasks are looked at, and what slows each down is found once an event: lists of thousands of
// tasks are played for every plan that a search looks at.
class Player {
 public:
  Player(const std::vector<Task>& tasks, double kernel_beside, bool host)
      : tasks_(tasks), kernel_beside_(kernel_beside), order_(tasks.size()) {
    out_.begin_s.assign(tasks.size(), kNever);
    out_.done_s.assign(tasks.size(), kNever);
    issued_s_.assign(tasks.size(), kNever);
    if (!host) out_.host_end_s = kLongBefore_s;
    std::array<size_t, kStreams> count{};
    for (const Task& task : tasks) ++count[static_cast<size_t>(task.stream)];
    size_t at = 0;
    for (size_t s = 0; s < kStreams; ++s) {
      queue_[s].head = queue_[s].end = at;
      if (count[s] > 0 || s == 0) active_[streams_++] = s;
      at += count[s];
    }
    for (size_t i = 0; i < tasks.size(); ++i) order_[queue_[static_cast<size_t>(tasks[i].stream)].end++] = i;
    issue();
  }

  Played run() {
    for (;;) {
      while (start_ready()) {
      }
      find_stretches();
      const double next = next_change();
      if (next == kNever) break;
      advance(next);
    }
    for (const double done : out_.done_s)
      if (done == kNever) throw SimulationError("tasks of a step wait for each other");
    return std::move(out_);
  }

 private:
  struct Queue {
    size_t head = 0, end = 0;  // in order_
    bool running = false;
    double left_s = 0;
    double stretch = 1;  // of the running task, as long as nothing changes
  };

  const Task& first(const Queue& q) const { return tasks_[order_[q.head]]; }

  // The host goes on until a task stops it.
  void issue() {
    while (next_ < tasks_.size()) {
      const Task& task = tasks_[next_];
      out_.host_end_s += task.host_s;
      issued_s_[next_++] = out_.host_end_s;
      if (task.stops_host) return;
    }
  }

  bool done(int task) const { return task < 0 || out_.done_s[static_cast<size_t>(task)] <= now_; }

  // Begins what can begin now, ends what takes no time; true when something changed.
  bool start_ready() {
    bool changed = false;
    for (size_t k = 0; k < streams_; ++k) {
      Queue& q = queue_[active_[k]];
      if (q.running || q.head == q.end) continue;
      const size_t i = order_[q.head];
      if (issued_s_[i] > now_ || !done(tasks_[i].after) || !done(tasks_[i].also_after)) continue;
      out_.begin_s[i] = now_;
      q.left_s = tasks_[i].length_s;
      q.running = true;
      changed = true;
      if (q.left_s <= 0) end(q);
    }
    return changed;
  }

  void end(Queue& q) {
    const size_t i = order_[q.head++];
    out_.done_s[i] = now_;
    q.running = false;
    if (tasks_[i].stream == Stream::compute) out_.end_s = now_;
    if (!tasks_[i].stops_host) return;
    out_.host_end_s = std::max(out_.host_end_s, now_);
    issue();
  }

  // Exchanges share the accelerator's links, but for loads of the engine, which share there; kernels and exchanges slow
  // each other down.
  void find_stretches() {
    exchanges_ = 0;
    int loads = 0;
    for (size_t k = 1; k < streams_ && active_[k] < kCopyStreams; ++k)
      if (const Queue& q = queue_[active_[k]]; q.running)
        ++exchanges_, loads += first(q).load != Exchange::none ? 1 : 0;
    const bool kernel = queue_[0].running;
    queue_[0].stretch = exchanges_ > 0 ? kernel_beside_ : 1;
    for (size_t k = 1; k < streams_ && active_[k] < kCopyStreams; ++k) {
      Queue& q = queue_[active_[k]];
      if (!q.running) continue;
      const Task& task = first(q);
      const int sharing = task.load != Exchange::none ? exchanges_ - loads + 1 : exchanges_;
      q.stretch = std::max(1, sharing) * (kernel ? std::max(1.0, task.beside_s / task.length_s) : 1);
    }
  }

  double next_change() const {
    double next = kNever;
    for (size_t k = 0; k < streams_; ++k) {
      const Queue& q = queue_[active_[k]];
      if (q.running)
        next = std::min(next, now_ + q.left_s * q.stretch);
      else if (q.head < q.end && issued_s_[order_[q.head]] > now_)
        next = std::min(next, issued_s_[order_[q.head]]);
    }
    return next;
  }

  void advance(double to) {
    const double step = to - now_;
    charge(step);
    now_ = to;
    for (size_t k = 0; k < streams_; ++k) {
      Queue& q = queue_[active_[k]];
      if (!q.running) continue;
      q.left_s -= step * (1 / q.stretch);
      // What is left may be less than the clock can tell apart: it would never end.
      if (q.left_s <= std::max(1e-13, 4 * std::numeric_limits<double>::epsilon() * now_)) end(q);
    }
  }

  // The compute stream works, or waits for something: an exchange that its next kernel needs, else the host.
  void charge(double step) {
    const Queue& q = queue_[0];
    if (q.running) {
      const double own = step / q.stretch;
      out_.busy[first(q).activity] += own;
      out_.busy[Activity::collective] += step - own;
      if (exchanges_ > 0) out_.busy.beside += own;
      return;
    }
    if (q.head == q.end) return;
    const Task& next = first(q);
    for (const int cause : {next.after, next.also_after})
      if (!done(cause) && tasks_[static_cast<size_t>(cause)].stream != Stream::compute) {
        out_.waited_s[static_cast<size_t>(tasks_[static_cast<size_t>(cause)].stream)] += step;
        return;
      }
    out_.host_wait_s += step;
    if (exchanges_ > 0) out_.host_exchange_s += step;
  }

  const std::vector<Task>& tasks_;
  double kernel_beside_;
  std::vector<size_t> order_;  // tasks, stream by stream
  std::array<Queue, kStreams> queue_;
  std::array<size_t, kStreams> active_{};  // streams that have tasks, and the compute stream
  size_t streams_ = 0;
  std::vector<double> issued_s_;
  size_t next_ = 0;    // task to be issued
  int exchanges_ = 0;  // that run, without copies to and from the host
  double now_ = 0;
  Played out_;
};

}  // namespace

Played play(const std::vector<Task>& tasks, double kernel_beside, bool host) {
  return Player(tasks, kernel_beside, host).run();
}

}  // namespace tw
