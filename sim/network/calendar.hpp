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
    const auto place = static_cast<uint32_t>(free_.empty() ? work_.size() : free_.back());
    if (free_.empty())
      work_.emplace_back();
    else
      free_.pop_back();
    work_[place] = std::move(what);
    heap_.push_back({t_s, sequence_++, place});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  std::function<void()> take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const uint32_t place = heap_.back().place;
    heap_.pop_back();
    free_.push_back(place);
    return std::move(work_[place]);
  }

 private:
  struct Event {  // small: a heap moves its elements about
    double t_s;
    uint64_t sequence;
    uint32_t place;  // of `work_`
  };
  static bool later(const Event& a, const Event& b) {
    return a.t_s > b.t_s || (a.t_s == b.t_s && a.sequence > b.sequence);
  }
  std::vector<Event> heap_;
  std::vector<std::function<void()>> work_;
  std::vector<uint32_t> free_;
  uint64_t sequence_ = 0;
};

}  // namespace tw::network
