// Tensors of a piece of a network with their lifetimes: what its forward pass makes, what stays for the backward pass,
// and what backward makes and frees, operation by operation, as autograd does (traced: reference/gpu_lab_6).
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "workload/plan.hpp"

namespace tw {

// Whose bytes they are.
enum class Held {
  activations,
  narrow_logits,  // in BF16
  logits,         // in FP32, and their gradients
  temporaries,    // gradients of activations, workspaces, recomputed tensors
  gradients,
  gathered,         // whole weights of a sharded layer
  gather_buffer,    // what they come in; on the gathering stream
  reduce_buffer,    // what gradients leave in; on the reducing stream
  shard_gradients,  // what is left of them
};
constexpr size_t kHeld = 9;
// A caching allocator keeps blocks for each stream (compute, gathers, reductions), and gives none to a request that is
// larger: logits, larger than all else, have theirs apart.
constexpr size_t kPools = 5;

// What a stretch of the step does to memory, over its beginning: the bytes at its end, the most in between with what
// was held then, and the most of each pool. Stretches join as (max, +).
struct HeldStretch {
  std::array<double, kHeld> end{}, at_peak{};
  double now = 0, peak = 0;
  std::array<double, kPools> pool{}, pool_peak{};

  void add(Held what, double bytes);  // allocates, or frees where negative
  void touch(Held what, double bytes) { add(what, bytes), add(what, -bytes); }
  void then(const HeldStretch& next, double times = 1);  // times: as often in a row, exact where `next` repeats
};

// One operation; tensors by their number.
struct TapeOp {
  std::vector<int> in, out;
  std::vector<int> saves;        // what its gradient wants
  double weight_gradient = 0;    // bytes
  double forward_workspace = 0;  // bytes while it runs
  double backward_workspace = 0;
  bool passes = false;  // the gradients of its inputs are that of its output: a sum
  bool joins = false;   // gradients of its outputs are copied into one tensor first
};

class Tape {
 public:
  // `copies`: sums of gradients are new tensors, as eager kernels make them.
  Tape(const Training& training, bool copies) : t_(training), copies_(copies) {}

  int tensor(double bytes, Held held = Held::activations);
  void add(TapeOp op);
  // Tensors from here on belong to this module (recomputation by list; -1: to none); returns the one before.
  int module(int module) { return std::exchange(module_, module); }
  bool every_other() { return ++products_ % 2 == 1; }  // the first, the third, ... product
  bool again(int tensor) const { return tensors_[static_cast<size_t>(tensor)].again; }
  void drop(int tensor) { tensors_[static_cast<size_t>(tensor)].again = true; }
  void keep(int tensor) { tensors_[static_cast<size_t>(tensor)].always = true; }
  void freeze() { frozen_ = true; }  // no gradient passes: nothing stays but the output
  void input(int tensor) { input_ = tensor; }
  void output(int tensor) { output_ = tensor; }
  double bytes(int tensor) const { return tensors_[static_cast<size_t>(tensor)].bytes; }

  // From the input, which is there, to the output and what is kept.
  HeldStretch forward() const;
  // From the output's gradient to the input's; what recomputation dropped is made again first. Gradients of weights are
  // added where they stay; else they live for the operation, or, where the kernel adds in place, not at all.
  enum class Weights { stay, pass, in_place };
  // With `later` gradients of weights are left to that stretch. What products keep and the gradients of their outputs
  // wait for it; eager autograd keeps the whole graph until then (torch.distributed.pipelining, _backward.py).
  HeldStretch backward(Weights weights, HeldStretch* later = nullptr) const;

 private:
  struct Tensor {
    double bytes = 0;
    Held held = Held::activations;
    bool saved = false, again = false, always = false;
  };
  bool stays(int tensor) const;
  const Training& t_;
  bool copies_, frozen_ = false;
  std::vector<Tensor> tensors_;
  std::vector<TapeOp> ops_;
  int module_ = -1, products_ = 0, input_ = -1, output_ = -1;
};

}  // namespace tw
