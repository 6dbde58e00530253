#include "step/noise.hpp"

#include <algorithm>
#include <boost/random/exponential_distribution.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/poisson_distribution.hpp>
#include <cmath>
#include <numbers>

#include "core/quantile.hpp"

namespace tw {
namespace {

constexpr int kMostStalls = 40;

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}
double normal_pdf(double z) {
  return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
}

// CDFs of (normal + k stalls) for k = 0, 1, 2, ... by the recursions of the gamma distribution:
//   F_k(x) = F_(k-1)(x) - L f_k(x),  f_k(x) = m^k s^(k-1) / (k-1)! exp(m^2 s^2 / 2 - m x) J_(k-1)(z),
// with m = 1 / L, z = (x - m s^2) / s and J_j(z) the integral of (z - u)^j phi(u) up to z:
//   J_0 = Phi, J_1 = z Phi + phi, J_j = z J_(j-1) + (j-1) J_(j-2).
class StallMixture {
 public:
  StallMixture(const MemberNoise& noise) : noise_(noise), sigma_(std::max(noise.sigma_s, 1e-4 * noise.stall_mean_s)) {}

  double cdf(double x) const {
    const double rate = 1 / noise_.stall_mean_s, s = sigma_;
    double weight = std::exp(-noise_.stalls), f = normal_cdf(x / s), total = weight * f;
    const double z = (x - rate * s * s) / s;
    const double exponent = 0.5 * rate * rate * s * s - rate * x, grown = std::exp(exponent);
    double j_before = 0, j = normal_cdf(z), power = rate;
    double left = 1 - weight;
    for (int k = 1; k <= kMostStalls && left > 1e-12; ++k) {
      const double density = exponent > 600 ? 0 : power * grown * j;
      f = std::clamp(f - noise_.stall_mean_s * density, 0.0, 1.0);
      weight *= noise_.stalls / k;
      left -= weight;
      total += weight * f;
      const double next = k == 1 ? z * j + normal_pdf(z) : z * j + (k - 1) * j_before;
      j_before = j;
      j = next;
      power *= rate * s / k;
    }
    return std::clamp(total + std::max(0.0, left) * f, 0.0, 1.0);
  }

 private:
  const MemberNoise& noise_;
  double sigma_;
};

}  // namespace

double member_cdf(const MemberNoise& noise, double x) {
  if (noise.stalls <= 0 || noise.stall_mean_s <= 0) {
    if (noise.sigma_s <= 0) return x >= 0 ? 1 : 0;
    return normal_cdf(x / noise.sigma_s);
  }
  return StallMixture(noise).cdf(x);
}

double member_quantile(const MemberNoise& noise, double p) {
  if (noise.stalls <= 0 || noise.stall_mean_s <= 0) return noise.sigma_s <= 0 ? 0 : noise.sigma_s * normal_quantile(p);
  // Who has no noise but stalls, mostly none, is mostly not late at all.
  if (noise.sigma_s <= 0 && p <= std::exp(-noise.stalls)) return 0;
  const StallMixture mixture(noise);
  // Stalls only add: the normal part alone is a lower bound, and all of it without a stall an upper one.
  const double sigma = std::max(noise.sigma_s, 1e-4 * noise.stall_mean_s), without = p * std::exp(noise.stalls);
  double low = sigma * normal_quantile(p), high = low + noise.stall_mean_s;
  if (without < 1 - 1e-15) high = sigma * normal_quantile(without);
  double below = mixture.cdf(low) - p, above = mixture.cdf(high) - p;
  while (above < 0 && high < 1e6) {
    low = high, below = above;
    high += 2 * (std::abs(high) + noise.stall_mean_s);
    above = mixture.cdf(high) - p;
  }
  // Regula falsi with the Illinois rule: the end that stays is halved.
  for (int i = 0; i < 100 && high - low > 1e-10 * (1 + std::abs(high)); ++i) {
    const double x = above > below ? std::clamp(low - below * (high - low) / (above - below), low, high) : low;
    const double middle = x > low && x < high ? x : 0.5 * (low + high);
    const double value = mixture.cdf(middle) - p;
    if (std::abs(value) < 1e-15) return middle;
    if (value < 0) {
      low = middle, below = value, above *= 0.5;
    } else {
      high = middle, above = value, below *= 0.5;
    }
  }
  return 0.5 * (low + high);
}

double draw_maximum(const MemberNoise& noise, double members, SplitMix64& stream) {
  const double u = uniform(stream);  // drawn even when silent, so that levels and settings share their streams
  if (noise.silent()) return 0;
  const double p = std::pow(u, 1 / std::max(1.0, members));
  return member_quantile(noise, std::clamp(p, 1e-300, 1 - 1e-15));
}

double draw_member(const MemberNoise& noise, SplitMix64& stream) {
  if (noise.silent()) return 0;
  double x = 0;
  if (noise.sigma_s > 0) x += boost::random::normal_distribution<double>(0, noise.sigma_s)(stream);
  if (noise.stalls > 0 && noise.stall_mean_s > 0) {
    const int count = boost::random::poisson_distribution<int, double>(noise.stalls)(stream);
    for (int i = 0; i < count; ++i)
      x += boost::random::exponential_distribution<double>(1 / noise.stall_mean_s)(stream);
  }
  return x;
}

namespace {

// Independent delays of consecutive pieces of work add up as their variances do (hint 10). Within the correlation time
// a slow clock stays slow: short intervals vary in proportion to their length.
double variance(double sigma, double length_s, Time correlation) {
  return sigma * sigma * length_s * std::min(1.0, length_s / correlation.value());
}

// Stalls that outlast the host's lead. They fall at any of the host's time: a stall of exponential length m outlasts a
// lead of L with probability exp(-L / m), and what is left of it is exponential again. The lead changes evenly
// meanwhile. A host that waits for its device takes its time to issue nothing (device_s 0), and the lead is used up.
double stalls_of(const HostNoise& profile, const IssuedWork& i, double nodes_per_member) {
  const double m = profile.stall_mean.value();
  if (m <= 0) return 0;
  const double before = std::max(0.0, i.lead_s) / m, after = std::max(0.0, i.lead_s + i.device_s - i.host_s) / m;
  const double change = std::abs(after - before), least = std::min(before, after);
  const double outlast = std::exp(-least) * (change > 1e-9 ? -std::expm1(-change) / change : 1);
  return profile.stalls_per_hour / 3600 * i.host_s * nodes_per_member * outlast;
}

// Where the host is late its own noise shows.
double late_host_s(const IssuedWork& i) {
  return i.device_s > 0 && i.host_s > i.device_s + i.lead_s ? i.host_s : 0;
}

double sigma_of(const HostNoise& profile, double device_s, double host_s) {
  return std::sqrt(variance(profile.device_sigma, device_s, profile.correlation) +
                   variance(profile.host_sigma, host_s, profile.correlation));
}

}  // namespace

MemberNoise noise_of(const HostNoise& profile, const IssuedWork& interval, double nodes_per_member) {
  return {sigma_of(profile, interval.device_s, late_host_s(interval)), stalls_of(profile, interval, nodes_per_member),
          profile.stall_mean.value()};
}

MemberNoise noise_of(const HostNoise& profile, const std::vector<IssuedWork>& intervals, double nodes_per_member) {
  return noise_of(profile, PipelineWork{{intervals}, 0}, nodes_per_member);
}

MemberNoise noise_of(const HostNoise& profile, const PipelineWork& work, double nodes_per_member) {
  MemberNoise n;
  n.stall_mean_s = profile.stall_mean.value();
  if (work.stages.empty()) return n;
  double device_s = 0, host_s = 0;
  for (const IssuedWork& i : work.stages[work.busiest]) device_s += i.device_s, host_s += late_host_s(i);
  n.sigma_s = sigma_of(profile, device_s, host_s);
  if (profile.stalls_per_hour <= 0) return n;
  const double nodes = nodes_per_member / static_cast<double>(work.stages.size());
  for (const auto& intervals : work.stages)
    for (const IssuedWork& i : intervals) n.stalls += stalls_of(profile, i, nodes);
  return n;
}

}  // namespace tw
