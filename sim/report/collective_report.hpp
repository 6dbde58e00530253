// Collectives as people know them from nccl-tests: a line a size with time, algorithm and bus bandwidth, and a figure.
#pragma once

#include <string>
#include <vector>

#include "network/collective.hpp"

namespace tw::report {

// One answer of the contract: op, bytes, ranks, algorithm, time_s, busbw_Bps, bound_s, bottleneck; then protocol,
// algbw_Bps, latency_s, bound_ratio, level.
std::string collective_json(const network::CollectiveCost& cost, int level);
std::string collectives_json(const std::vector<network::CollectiveCost>& costs, int level);  // an array of them

std::string collective_text(const network::CollectiveCost& cost);  // one size, in words
// What was considered for one size, fastest in the library's eyes first, and what cannot run.
std::string choice_text(const network::CollectiveCost& cost);
// Bandwidths in GB/s of 1e9 bytes, times in microseconds, as nccl-tests prints them.
std::string collectives_table(const std::string& cluster, const std::vector<network::CollectiveCost>& costs);
std::string collectives_csv(const std::vector<network::CollectiveCost>& costs);

// FOLDER/collective.{csv,svg,png}: bus bandwidth over size, with the bound. Returns what a user should hear.
std::vector<std::string> collectives_figure(const std::string& folder, const std::string& cluster,
                                            const std::vector<network::CollectiveCost>& costs);

}  // namespace tw::report
