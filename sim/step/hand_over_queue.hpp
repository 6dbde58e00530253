// The order in which the ranks of a pipeline issue sends and receives when each rank has one queue for them: a transfer
// moves when both sides have come to it, and whatever stands behind it waits (torch.distributed.pipelining).
#pragma once

#include <cstddef>
#include <vector>

#include "step/schedule.hpp"

namespace tw {

// One side of a transfer from `visit`'s stage to the stage of the next visit of that micro-batch.
struct HandOver {
  int transfer = 0;
  bool send = false;
};

// Sends and receives that are issued together. They begin when the visits before have been computed, and when they are
// done the queue goes on.
struct HandOverBatch {
  size_t after = 0;  // visits of the stage that have to be done
  std::vector<HandOver> sides;
};

struct Transfer {
  int from = 0, to = 0;
  size_t visit = 0;  // of the receiver, by its number in the stage's list
  Visit sent;        // what the sender computed
};

struct HandOverQueues {
  std::vector<std::vector<HandOverBatch>> batches;  // [stage]
  std::vector<std::vector<size_t>> needs;           // [stage][visit]: batches that have to be done before it begins
  std::vector<Transfer> transfers;
};

// `paired`: a forward's send and the next backward's receive are one batch (GPipe, 1F1B); else every send and receive
// stands alone, in the order in which the schedule comes to them.
HandOverQueues hand_over_queues(const ChunkPlacement& placement, const std::vector<std::vector<Visit>>& visits,
                                int micro_batches, bool paired);

// Where a micro-batch goes after a visit: false when it is at its end. A turn stays on its stage.
bool next_visit(const ChunkPlacement& placement, int micro_batches, int stage, const Visit& v, int& next_stage,
                Visit& next);

}  // namespace tw
