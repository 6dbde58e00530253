#include "step/dualpipe_order.hpp"

#include <deque>

namespace tw {
namespace {

class Order {
 public:
  explicit Order(const DualPipeOrder& o) : o_(o) {}

  std::vector<Visit> visits() {
    const int near = o_.ranks - o_.rank - 1;
    for (int i = 0; i < 2 * near; ++i) forward(0);
    for (int i = 0; i <= o_.rank; ++i) forward(0), forward(1);
    for (int i = 0; i < near; ++i) backward(1, true), weight(), forward(1);
    for (int i = 0; i < o_.each - o_.ranks * 2 + o_.rank + 1; ++i) {
      both(0, 1, !(i == 0 && o_.last));
      both(1, 0, true);
    }
    for (int i = 0; i < near; ++i) backward(1, false), both(1, 0, true);
    bool split = false;
    for (int i = 0; i <= o_.rank; ++i) {
      const bool turn = i == (o_.rank + 1) / 2;
      if (turn && o_.odd) split = true;
      backward(1, split);
      if (turn && !o_.odd) split = true;
      backward(0, split);
    }
    for (int i = 0; i < near; ++i) weight(), backward(0, true);
    while (!waiting_.empty()) weight();
    return std::move(list_);
  }

 private:
  int slot(int phase) const { return phase ^ o_.first; }
  int number(int slot, int k) const { return k + (slot == 0 ? o_.offset0 : o_.offset1); }
  void forward(int phase) {
    const int s = slot(phase);
    list_.push_back({false, s, number(s, forwards_[s]++)});
  }
  void backward(int phase, bool split) {
    const int s = slot(phase);
    list_.push_back({true, s, number(s, backwards_[s]++), split ? Part::input : Part::whole});
    if (split) waiting_.push_back(list_.back());
  }
  void both(int ahead, int back, bool joined) {
    forward(ahead);
    list_.back().joined = joined;
    backward(back, false);
  }
  void weight() {
    Visit v = waiting_.front();
    waiting_.pop_front();
    v.part = Part::weight;
    list_.push_back(v);
  }

  DualPipeOrder o_;
  std::vector<Visit> list_;
  int forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
  std::deque<Visit> waiting_;
};

}  // namespace

std::vector<Visit> dualpipe_visits(const DualPipeOrder& order) {
  return Order(order).visits();
}

}  // namespace tw
