// What the head and the loss keep and make.
#include <algorithm>

#include "workload/layer_tensors.hpp"
#include "workload/memory.hpp"

namespace tw {

Tape head_tape(const Work& w) {
  static const Training plain{};  // the head is never recomputed
  Tape tape(plain, w.software.kernels.eager_elementwise);
  const Sizes& s = w.s;
  const double logits = s.tokens * static_cast<double>(w.n.vocabulary) / s.tp / w.t.loss_chunks;
  const int x = tape.tensor(kBf16 * s.shard * s.hidden);
  tape.input(x);
  const int h = tape.tensor(kBf16 * s.shard * s.hidden);
  tape.add({{x}, {h}, {x}});
  int g = h;
  if (s.tp > 1 && w.p.sequence_parallel) {
    g = tape.tensor(kBf16 * s.tokens * s.hidden);
    tape.add({{h}, {g}, {}});
  }
  const int y = tape.tensor(kBf16 * logits, Held::narrow_logits);
  TapeOp product{{g}, {y}, {}};
  if (w.trained()) {
    product.saves = {g};
    product.weight_gradient = kBf16 * static_cast<double>(w.n.vocabulary) / s.tp * s.hidden;
  }
  tape.add(product);
  if (w.software.memory.loss == Loss::in_place) {
    tape.output(y);
    return tape;
  }
  const int loss = tape.tensor(0, Held::logits);
  if (w.software.memory.loss == Loss::eager) {
    // FP32 logits, their log softmax, and the gradients of both.
    const int wide = tape.tensor(kFp32 * logits, Held::logits), chances = tape.tensor(kFp32 * logits, Held::logits);
    tape.add({{y}, {wide}, {}});
    TapeOp softmax{{wide}, {chances}, {chances}};
    // Over parts of the vocabulary: exponentials beside (torch.distributed.tensor.parallel.loss).
    if (s.tp > 1) softmax.backward_workspace = kFp32 * logits;
    tape.add(softmax);
    tape.add({{chances}, {loss}, {chances}});
  } else {
    const int chances = tape.tensor(kFp32 * logits, Held::logits);  // FP32, in place of the logits
    tape.add({{y}, {loss, chances}, {chances}});
  }
  tape.output(loss);
  return tape;
}

std::vector<HeadPiece> head_pieces(Work w) {
  const auto h = static_cast<double>(w.n.hidden), head = 2 * h * static_cast<double>(w.n.vocabulary);
  std::vector<HeadPiece> pieces;
  for (int depth = 0; w.n.next_token && depth < w.n.next_token->depth; ++depth) {
    pieces.push_back({join_tape(w), 4 * h * h, depth > 0});
    for (const LayerKind& kind : next_token_kinds(w.n)) {
      w.kind = kind;
      pieces.push_back({layer_tape(w), layer_flops(w.n, kind, static_cast<double>(w.t.sequence))});
    }
    pieces.push_back({head_tape(w), head});
  }
  pieces.push_back({head_tape(w), head, !pieces.empty()});
  return pieces;
}

}  // namespace tw
