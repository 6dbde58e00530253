// Faults of the power data of a cluster, all at once.
#pragma once

#include <vector>

#include "core/describe.hpp"
#include "hardware/activity.hpp"
#include "topology/cluster.hpp"

namespace tw {

// `at` stands on the cluster block. `used`: activities that the workload spends time in. Faults: watts of a used
// activity or component that are zero (with an example line), idle above load, limits below idle, stages that cannot
// carry what they feed when nothing runs.
void check_power(const Cluster& cluster, const std::vector<Activity>& used, const ReadContext& at);

}  // namespace tw
