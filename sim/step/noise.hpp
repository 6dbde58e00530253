// Noise of hosts and devices at synchronisation points. A member (a data-parallel replica) works for a while with
// random delay; where members meet, the slowest counts.
#pragma once

#include <vector>

#include "core/random.hpp"
#include "step/inputs.hpp"

namespace tw {

// Delay of one member over one interval between two synchronisations: a normal part (mean zero) and rare stalls
// (Poisson count, exponential length).
struct MemberNoise {
  double sigma_s = 0;
  double stalls = 0;  // expected number in the interval
  double stall_mean_s = 0;
  bool silent() const { return sigma_s <= 0 && stalls <= 0; }
};

// P(delay of one member <= x).
double member_cdf(const MemberNoise& noise, double x_s);

// x with member_cdf(x) = p. p in (0, 1).
double member_quantile(const MemberNoise& noise, double p);

// One draw of the maximum over `members` independent ones: the inverse CDF at u^(1/members).
double draw_maximum(const MemberNoise& noise, double members, SplitMix64& stream);

// One draw of a single member (level 2: every member on its own).
double draw_member(const MemberNoise& noise, SplitMix64& stream);

// Work between two places where members may meet: the device needs device_s, the host issues it in host_s, and was
// lead_s ahead of the device when it began.
struct IssuedWork {
  double device_s = 0, host_s = 0, lead_s = 0;
};

// Noise of one member over an interval, on a node with `profile` noise. The bound side carries the noise. Stalls hit
// the host, and count where they outlast its lead, which grows while it issues faster than the device works: meetings
// are queued on the device and stop no host. `nodes_per_member` may be below 1 (several replicas on a node).
MemberNoise noise_of(const HostNoise& profile, const IssuedWork& interval, double nodes_per_member);
// The same over several intervals at whose end alone members meet.
MemberNoise noise_of(const HostNoise& profile, const std::vector<IssuedWork>& intervals, double nodes_per_member);

// Work of a pipeline, at whose end alone members meet. Its pace, and what is late in proportion to work, is that of its
// busiest stage. Stalls fall on the nodes of every stage, each with its own lead.
struct PipelineWork {
  std::vector<std::vector<IssuedWork>> stages;
  size_t busiest = 0;
};
MemberNoise noise_of(const HostNoise& profile, const PipelineWork& work, double nodes_per_member);

}  // namespace tw
