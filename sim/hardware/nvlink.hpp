// Links between the accelerators of one node (or of one NVLink domain) and how fast collectives run over them.
#pragma once

#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"

namespace tw {

// Names of collectives in profiles and on the command line.
inline const std::vector<std::string>& collective_names() {
  static const std::vector<std::string> names = {"all-reduce", "reduce-scatter", "all-gather",
                                                 "broadcast",  "all-to-all",     "send-recv"};
  return names;
}

// What one collective reaches inside the domain. Bus bandwidth as in nccl-tests: payload bytes times the factor of the
// operation (2(n-1)/n for all-reduce, (n-1)/n for the others) over time.
struct DomainCollective {
  std::string operation;  // "all-reduce", "all-gather", ...
  int ranks = 0;
  Time floor;  // shortest call, launched from the host
  Bandwidth bus_bandwidth;
  Bytes half_size;  // size at which half the bus bandwidth is reached beyond the floor; 0 = none
  std::string source;
  static void describe(Description<DomainCollective>& d);
};

struct NvlinkDomain {
  Bandwidth bandwidth;  // per accelerator and direction: "900 GB/s" of a datasheet means both directions, so 450 GB/s
  int nodes = 1;        // nodes that share one domain
  int island = 0;       // accelerators of a node that NVLink joins; the others are reached over PCIe; 0: all
  double multicast_efficiency = 0;  // reached share of the line rate through switches that reduce; 0: the library's
  bool host_calls = false;          // calls are issued one by one by the host that the floors were measured with
  // A kernel that the host has issued ahead starts without the launch that a lone call pays for.
  Time issued_floor = seconds(10e-6);
  // Large exchanges reach this share of the line rate (reference/gpu_lab/collectives.csv: 329 to 361 of 450 GB/s).
  double reached_share = 0.78;
  std::vector<DomainCollective> collectives;
  static void describe(Description<NvlinkDomain>& d);
};

}  // namespace tw
