// Collectives inside one NVLink domain: closed form from measured speeds, else the bandwidth bound.
#pragma once

#include <array>
#include <vector>

#include "hardware/collective_library.hpp"
#include "hardware/nvlink.hpp"
#include "network/collective_types.hpp"

namespace tw::network {

// Bytes that cross a rank's link for each byte of the full buffer, as nccl-tests counts bus bandwidth: 2(n-1)/n for
// all-reduce, (n-1)/n for reduce-scatter, all-gather and all-to-all, 1 for broadcast and send-recv.
double bus_factor(Operation operation, int ranks);

// The measured speeds of a domain, ready for the hot path. Between measured numbers of ranks floor, bus bandwidth and
// half size are interpolated linearly in log2(ranks), outside they are held. An operation that was not measured takes
// the speeds of a related one (reduce-scatter and all-gather of each other, broadcast of all-gather, send-recv of
// all-to-all), then the bandwidth bound. More ranks than were measured have more rounds, each with the latency that the
// library's table gives it.
class DomainSpeeds {
 public:
  explicit DomainSpeeds(const NvlinkDomain& domain, const CollectiveLibrary& library = default_library());

  // t = max(floor, factor * (bytes + half_size) / bus_bandwidth), or less where a protocol of low latency gets small
  // buffers through earlier; `bytes` is the full buffer of a rank. Zero for fewer than two ranks. With `floor_s` >= 0
  // that is taken in place of the measured floor, which holds the launch from the laboratory's host: calls that are
  // issued ahead have a lower one.
  double time_s(Operation operation, int ranks, double bytes, double floor_s = -1) const;

  bool measured(Operation operation) const { return !measured_[static_cast<size_t>(operation)].empty(); }

  // Reached bus bandwidth of large buffers over the link's line rate, at most 1.
  double efficiency(Operation operation, int ranks) const;

 private:
  struct Speed {
    double log2_ranks = 0, floor_s = 0, bandwidth_Bps = 0, half_bytes = 0;
  };
  Speed at(Operation operation, int ranks) const;
  double rounds(Operation operation, int ranks) const;
  double low_latency_s(Operation operation, int ranks, double bytes, double bus_Bps) const;
  double line_Bps_;
  const CollectiveLibrary& library_;
  std::array<std::vector<Speed>, 6> measured_;  // by operation, in order of ranks
};

double domain_time_s(const NvlinkDomain& domain, Operation operation, int ranks, double bytes);

}  // namespace tw::network
