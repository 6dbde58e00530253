#include "workload/tape.hpp"

#include <algorithm>

namespace tw {
namespace {

size_t index(Held what) {
  return static_cast<size_t>(what);
}

size_t pool_of(Held what) {
  if (what == Held::gather_buffer) return 1;
  if (what == Held::reduce_buffer || what == Held::shard_gradients) return 2;
  return what == Held::narrow_logits ? 3 : what == Held::logits ? 4 : 0;
}

bool logits(Held what) {
  return what == Held::narrow_logits || what == Held::logits;
}

// Gradients of tensors in backward; sums share one buffer.
class GradientBuffers {
 public:
  GradientBuffers(HeldStretch& now, HeldStretch* later) : now_(now), later_(later) {}
  // Of bytes that are there already.
  int hold(double bytes, int holders, Held held) {
    buffers_.push_back({bytes, holders, held});
    return static_cast<int>(buffers_.size()) - 1;
  }
  int make(double bytes, Held held) {
    now_.add(held, bytes);
    return hold(bytes, 1, held);
  }
  void share(int buffer) { ++buffers_[static_cast<size_t>(buffer)].holders; }
  void release(int buffer) {
    if (buffer < 0) return;
    Buffer& b = buffers_[static_cast<size_t>(buffer)];
    if (--b.holders == 0) now_.add(b.held, -b.bytes);
  }
  // It stays for the gradients of weights that are put off.
  void wait(int buffer) {
    Buffer& b = buffers_[static_cast<size_t>(buffer)];
    if (std::exchange(b.waits, true)) return;
    ++b.holders;
    later_->add(Held::activations, -b.bytes);
  }
  // What waits counts as activations from now on.
  void settle() {
    for (const Buffer& b : buffers_)
      if (b.waits) now_.add(b.held, -b.bytes), now_.add(Held::activations, b.bytes);
  }

 private:
  struct Buffer {
    double bytes = 0;
    int holders = 0;
    Held held = Held::temporaries;
    bool waits = false;
  };
  HeldStretch& now_;
  HeldStretch* later_;
  std::vector<Buffer> buffers_;
};

}  // namespace

void HeldStretch::add(Held what, double bytes) {
  const size_t p = pool_of(what);
  end[index(what)] += bytes, now += bytes, pool[p] += bytes;
  pool_peak[p] = std::max(pool_peak[p], pool[p]);
  if (now > peak) peak = now, at_peak = end;
}

void HeldStretch::then(const HeldStretch& next, double times) {
  const double before = next.now > 0 ? times - 1 : 0;  // a growing stretch peaks in its last round, others in the first
  if (now + before * next.now + next.peak > peak) {
    peak = now + before * next.now + next.peak;
    for (size_t i = 0; i < kHeld; ++i) at_peak[i] = end[i] + before * next.end[i] + next.at_peak[i];
  }
  for (size_t i = 0; i < kPools; ++i) {
    const double rounds = next.pool[i] > 0 ? times - 1 : 0;
    pool_peak[i] = std::max(pool_peak[i], pool[i] + rounds * next.pool[i] + next.pool_peak[i]);
    pool[i] += times * next.pool[i];
  }
  for (size_t i = 0; i < kHeld; ++i) end[i] += times * next.end[i];
  now += times * next.now;
}

int Tape::tensor(double bytes, Held held) {
  Tensor t;
  t.bytes = bytes, t.held = held;
  t.again = t_.recompute == Recompute::full || t_.recompute == Recompute::alternate ||
            (module_ >= 0 && recomputes(t_, static_cast<Module>(module_)));
  tensors_.push_back(t);
  return static_cast<int>(tensors_.size()) - 1;
}

void Tape::add(TapeOp op) {
  for (const int t : op.saves) tensors_[static_cast<size_t>(t)].saved = true;
  ops_.push_back(std::move(op));
}

bool Tape::stays(int tensor) const {
  const Tensor& t = tensors_[static_cast<size_t>(tensor)];
  return !frozen_ && (tensor == input_ || t.always || (t.saved && !t.again));
}

HeldStretch Tape::forward() const {
  std::vector<int> uses(tensors_.size(), 0);
  for (const TapeOp& op : ops_)
    for (const int t : op.in) ++uses[static_cast<size_t>(t)];
  HeldStretch s;
  const auto drop = [&](int t) {
    if (uses[static_cast<size_t>(t)] == 0 && !stays(t) && t != output_)
      s.add(tensors_[static_cast<size_t>(t)].held, -bytes(t));
  };
  for (const TapeOp& op : ops_) {
    for (const int t : op.out) s.add(tensors_[static_cast<size_t>(t)].held, bytes(t));
    s.touch(Held::temporaries, op.forward_workspace);
    for (const int t : op.in) --uses[static_cast<size_t>(t)], drop(t);
    for (const int t : op.out) drop(t);  // kept for backward alone, and not even that
  }
  return s;
}

HeldStretch Tape::backward(Weights weights, HeldStretch* later) const {
  HeldStretch s;
  std::vector<int> users(tensors_.size(), 0);
  std::vector<bool> of_products(tensors_.size(), copies_);
  for (const TapeOp& op : ops_)
    for (const int t : op.saves) {
      ++users[static_cast<size_t>(t)];
      if (op.weight_gradient > 0) of_products[static_cast<size_t>(t)] = true;
    }
  std::vector<bool> made(tensors_.size(), false);  // by recomputation
  for (size_t t = 0; t < tensors_.size(); ++t)
    if (tensors_[t].saved && !stays(static_cast<int>(t))) made[t] = true, s.add(Held::temporaries, tensors_[t].bytes);
  const auto held_of = [&](int t) {  // of its gradient
    const Held held = tensors_[static_cast<size_t>(t)].held;
    return logits(held) ? held : Held::temporaries;
  };
  GradientBuffers buffers(s, later);
  const auto fresh = [&](int t) { return buffers.make(bytes(t), held_of(t)); };
  // The output's gradient takes the place of the output itself, where that is logits.
  std::vector<int> gradient(tensors_.size(), -1);
  gradient[static_cast<size_t>(output_)] = buffers.hold(bytes(output_), 1, held_of(output_));
  for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
    const bool put_off = later != nullptr && op->weight_gradient > 0;
    if (op->joins) {
      double whole = 0;
      for (const int t : op->out) whole += bytes(t);
      s.touch(Held::temporaries, whole);
      if (put_off) s.add(Held::temporaries, whole), buffers.wait(buffers.hold(whole, 0, Held::temporaries));
    } else if (put_off) {
      buffers.wait(gradient[static_cast<size_t>(op->out.front())]);
    }
    const bool lives = op->weight_gradient > 0 && weights != Weights::in_place;
    const Held where = weights == Weights::stay ? Held::gradients : Held::temporaries;
    HeldStretch& with_weights = put_off ? *later : s;
    if (lives) with_weights.add(where, op->weight_gradient);
    const Held working = held_of(op->out.front());
    s.add(working, op->backward_workspace);
    for (const int t : op->in) {
      int& g = gradient[static_cast<size_t>(t)];
      const int from = gradient[static_cast<size_t>(op->out.front())];
      int mine = op->passes && from >= 0 ? from : fresh(t);
      if (op->passes && from >= 0) buffers.share(from);
      if (g >= 0) {
        const int sum = copies_ ? fresh(t) : mine;
        if (copies_) buffers.release(mine);
        mine = sum;
        buffers.release(g);
      }
      g = mine;
    }
    s.add(working, -op->backward_workspace);
    if (lives && weights == Weights::pass) with_weights.add(where, -op->weight_gradient);
    for (const int t : op->saves)
      if (--users[static_cast<size_t>(t)] == 0)
        (later != nullptr && of_products[static_cast<size_t>(t)] ? *later : s)
            .add(made[static_cast<size_t>(t)] ? Held::temporaries : tensors_[static_cast<size_t>(t)].held, -bytes(t));
    for (const int t : op->out)
      buffers.release(gradient[static_cast<size_t>(t)]), gradient[static_cast<size_t>(t)] = -1;
  }
  // Kept by rule though no gradient wants them.
  for (size_t t = 0; t < tensors_.size(); ++t)
    if (tensors_[t].always && !tensors_[t].saved) s.add(tensors_[t].held, -tensors_[t].bytes);
  // An input that nothing saves was kept for recomputation.
  if (input_ >= 0 && !tensors_[static_cast<size_t>(input_)].saved)
    s.add(tensors_[static_cast<size_t>(input_)].held, -bytes(input_));
  buffers.settle();
  return s;
}

}  // namespace tw
