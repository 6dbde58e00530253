// The order of DualPipe and of its folded half, DualPipeV (DeepSeek's published code): eight phases of forwards and
// backwards of two chunks.
#pragma once

#include <vector>

#include "step/schedule.hpp"

namespace tw {

struct DualPipeOrder {
  int rank = 0;                  // distance from the end where micro-batches of slot `first` enter
  int ranks = 1;                 // of one side
  int each = 1;                  // micro-batches of each slot
  int first = 0;                 // the slot whose micro-batches enter nearest
  int offset0 = 0, offset1 = 0;  // number of the first micro-batch of slots 0 and 1
  bool odd = false;              // which of the two backwards of the drain is split first
  bool last = false;             // the fold: its first pair is not joined
};

std::vector<Visit> dualpipe_visits(const DualPipeOrder& order);

}  // namespace tw
