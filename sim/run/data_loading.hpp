// Reading training samples: over the storage network and through the loader workers of each accelerator. Batches are
// prefetched, so reading costs time only where it takes longer than the step.
#pragma once

#include <string>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "step/inputs.hpp"

namespace tw {

struct DataLoading {
  Bytes sample_bytes;
  int workers = 8;
  double samples_per_worker = 0;  // a second; 0: no limit
  static void describe(Description<DataLoading>& d);
};

struct InputTime {
  double batch_s = 0;      // to read one global batch at full speed
  std::string bottleneck;  // "storage", "storage adapters of the nodes", "loader workers"; empty: nothing is read
};
InputTime input_time(const StepInputs& in, const DataLoading& data);

}  // namespace tw
