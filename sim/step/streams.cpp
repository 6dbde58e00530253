#include "step/streams.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/error.hpp"

namespace tw {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLongBefore_s = -1e9;

class Player {
 public:
  Player(const std::vector<Task>& tasks, double kernel_beside, bool host)
      : tasks_(tasks), kernel_beside_(kernel_beside) {
    out_.begin_s.assign(tasks.size(), kNever);
    out_.done_s.assign(tasks.size(), kNever);
    issued_s_.assign(tasks.size(), kNever);
    if (!host) out_.host_end_s = kLongBefore_s;
    for (size_t i = 0; i < tasks.size(); ++i)
      queue_[static_cast<size_t>(tasks[i].stream)].push_back(static_cast<int>(i));
    issue();
  }

  Played run() {
    for (;;) {
      while (start_ready()) {
      }
      const double next = next_change();
      if (next == kNever) break;
      advance(next);
    }
    for (const double done : out_.done_s)
      if (done == kNever) throw SimulationError("tasks of a step wait for each other");
    return std::move(out_);
  }

 private:
  struct Queue : std::vector<int> {
    size_t head = 0;
    bool running = false;
    double left_s = 0;
  };

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
    for (Queue& q : queue_) {
      if (q.running || q.head == q.size()) continue;
      const auto i = static_cast<size_t>(q[q.head]);
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
    const auto i = static_cast<size_t>(q[q.head++]);
    out_.done_s[i] = now_;
    q.running = false;
    if (tasks_[i].stream == Stream::compute) out_.end_s = now_;
    if (!tasks_[i].stops_host) return;
    out_.host_end_s = std::max(out_.host_end_s, now_);
    issue();
  }

  int exchanges() const {
    int running = 0;
    for (size_t s = 1; s < kCopyStreams; ++s) running += queue_[s].running ? 1 : 0;
    return running;
  }

  // Exchanges share the accelerator's links; kernels and exchanges slow each other down.
  double stretch(size_t stream) const {
    if (stream == 0) return exchanges() > 0 ? kernel_beside_ : 1;
    if (stream >= kCopyStreams) return 1;
    const Task& task = tasks_[static_cast<size_t>(queue_[stream][queue_[stream].head])];
    int sharing = exchanges();
    for (size_t s = 1; s < kCopyStreams && task.load != Exchange::none; ++s)  // loads of the engine share there
      if (s != stream && queue_[s].running &&
          tasks_[static_cast<size_t>(queue_[s][queue_[s].head])].load != Exchange::none)
        --sharing;
    return std::max(1, sharing) * (queue_[0].running ? std::max(1.0, task.beside_s / task.length_s) : 1);
  }

  double next_change() const {
    double next = kNever;
    for (size_t s = 0; s < kStreams; ++s) {
      const Queue& q = queue_[s];
      if (q.running)
        next = std::min(next, now_ + q.left_s * stretch(s));
      else if (q.head < q.size() && issued_s_[static_cast<size_t>(q[q.head])] > now_)
        next = std::min(next, issued_s_[static_cast<size_t>(q[q.head])]);
    }
    return next;
  }

  void advance(double to) {
    std::array<double, kStreams> rate{};
    for (size_t s = 0; s < kStreams; ++s)
      if (queue_[s].running) rate[s] = 1 / stretch(s);
    const double step = to - now_;
    charge(step);
    now_ = to;
    for (size_t s = 0; s < kStreams; ++s) {
      Queue& q = queue_[s];
      if (!q.running) continue;
      q.left_s -= step * rate[s];
      // What is left may be less than the clock can tell apart: it would never end.
      if (q.left_s <= std::max(1e-13, 4 * std::numeric_limits<double>::epsilon() * now_)) end(q);
    }
  }

  // The compute stream works, or waits for something: an exchange that its next kernel needs, else the host.
  void charge(double step) {
    const Queue& q = queue_[0];
    if (q.running) {
      const double own = step / stretch(0);
      out_.busy[tasks_[static_cast<size_t>(q[q.head])].activity] += own;
      out_.busy[Activity::collective] += step - own;
      if (exchanges() > 0) out_.busy.beside += own;
      return;
    }
    if (q.head == q.size()) return;
    const Task& next = tasks_[static_cast<size_t>(q[q.head])];
    for (const int cause : {next.after, next.also_after})
      if (!done(cause) && tasks_[static_cast<size_t>(cause)].stream != Stream::compute) {
        out_.waited_s[static_cast<size_t>(tasks_[static_cast<size_t>(cause)].stream)] += step;
        return;
      }
    out_.host_wait_s += step;
    if (exchanges() > 0) out_.host_exchange_s += step;
  }

  const std::vector<Task>& tasks_;
  double kernel_beside_;
  std::array<Queue, kStreams> queue_;
  std::vector<double> issued_s_;
  size_t next_ = 0;  // task to be issued
  double now_ = 0;
  Played out_;
};

}  // namespace

Played play(const std::vector<Task>& tasks, double kernel_beside, bool host) {
  return Player(tasks, kernel_beside, host).run();
}

}  // namespace tw
