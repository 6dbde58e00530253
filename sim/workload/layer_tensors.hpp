// The tensors of a layer, and of head and loss, as a release's kernels make them.
#pragma once

#include "workload/layer_builder.hpp"
#include "workload/tape.hpp"

namespace tw {

Tape layer_tape(const Work& work);
// Final norm, head and loss; what next-token layers join counts with their layers.
Tape head_tape(const Work& work);

}  // namespace tw
