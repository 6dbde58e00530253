// A step while some nodes and cables are slow: the same events with these workers' visits longer and these links
// narrower, so that a pipeline, a ring or a tree waits for them as far as it must.
#pragma once

#include <vector>

#include "run/run_model.hpp"

namespace tw {

// For RunModel::slow_pace: keeps what it has simulated. The arguments must outlive it. Profiled workloads and jobs of
// one stage follow their slowest node as a whole, as its slow-down is defined.
std::function<double(const std::vector<double>&, const std::vector<bool>&)> slow_pace(const RunInputs& in,
                                                                                      const RunModel& model,
                                                                                      const std::vector<int>& nodes);

// The cluster with some of the run's slow cables.
Cluster with_slow_cables(const Cluster& cluster, const std::vector<SlowCable>& cables, const std::vector<bool>& slow);

}  // namespace tw
