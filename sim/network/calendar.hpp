// Events in order of (time, sequence): equal times run in the order they were asked for, which SimGrid does not
// promise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace tw::network {

class Calendar {
 public:
  bool empty() const { return heap_.empty(); }
  double next_s() const { return heap_.front().t_s; }
  void add(double t_s, std::function<void()> what) {
    heap_.push_back({t_s, sequence_++, std::move(what)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  std::function<void()> take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    std::function<void()> what = std::move(heap_.back().what);
    heap_.pop_back();
    return what;
  }

 private:
  struct Event {
    double t_s;
    uint64_t sequence;
    std::function<void()> what;
  };
  static bool later(const Event& a, const Event& b) {
    return a.t_s > b.t_s || (a.t_s == b.t_s && a.sequence > b.sequence);
  }
  std::vector<Event> heap_;
  uint64_t sequence_ = 0;
};

}  // namespace tw::network
