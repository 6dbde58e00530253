// The tensors of a layer, and of head and loss, as a release's kernels make them.
#pragma once

#include "workload/layer_builder.hpp"
#include "workload/tape.hpp"

namespace tw {

// What a next-token layer begins with: embeddings of the tokens after and what the head before it took, normed and
// projected together.
Tape join_tape(const Work& w);
Tape layer_tape(const Work& work);
// Final norm, head and loss.
Tape head_tape(const Work& work);

// What follows the last layer, in the order of a forward pass: next-token layers with their heads, and the head.
struct HeadPiece {
  Tape tape;
  double flops = 0;     // of one token
  bool shares = false;  // its input is an earlier piece's, too, whose backward pass frees it
};
std::vector<HeadPiece> head_pieces(Work work);

}  // namespace tw
