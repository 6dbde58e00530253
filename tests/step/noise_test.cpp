#include "step/noise.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace tw;

TEST_CASE("the distribution of one member matches its own draws") {
  const MemberNoise noise = GENERATE(MemberNoise{0.1, 0, 0}, MemberNoise{0.02, 0.3, 0.1}, MemberNoise{0.05, 3, 0.05},
                                     MemberNoise{0, 0.5, 0.2});
  auto stream = random_stream(3, "test");
  std::vector<double> draws;
  for (int i = 0; i < 40000; ++i) draws.push_back(draw_member(noise, stream));
  std::sort(draws.begin(), draws.end());
  for (const double p : {0.1, 0.5, 0.9, 0.99}) {
    const double x = draws[static_cast<size_t>(p * 40000)];
    if (x != 0) CHECK(member_cdf(noise, x) == Approx(p).margin(0.012));
  }
}

TEST_CASE("quantile and distribution are each other's inverse") {
  const MemberNoise noise{0.03, 0.4, 0.08};
  for (const double p : {1e-6, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-9})
    CHECK(member_cdf(noise, member_quantile(noise, p)) == Approx(p).epsilon(1e-6));
}

TEST_CASE("the maximum of normal members has the known means") {
  // Expected maxima of n standard normals: order statistics tables (Harter 1961).
  for (const auto& [n, mean] : {std::pair{2.0, 0.5642}, {8.0, 1.4236}, {64.0, 2.3439}}) {
    auto stream = random_stream(5, "maxima");
    double sum = 0;
    for (int i = 0; i < 40000; ++i) sum += draw_maximum({1, 0, 0}, n, stream);
    CHECK(sum / 40000 == Approx(mean).margin(0.02));
  }
}

TEST_CASE("more members never wait less, and a silent member adds nothing") {
  const MemberNoise noise{0.03, 0.2, 0.05};
  double before = -1;
  for (const double n : {1.0, 2.0, 16.0, 1024.0}) {
    auto stream = random_stream(1, "same");
    const double x = draw_maximum(noise, n, stream);
    CHECK(x >= before);
    before = x;
  }
  auto stream = random_stream(1, "same");
  CHECK(draw_maximum({}, 64, stream) == 0);
}

TEST_CASE("members without noise but stalls are not late at all where none stalls") {
  const MemberNoise rare{0, 1e-3, 0.05};
  auto stream = random_stream(2, "rare");
  double sum = 0;
  int late = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw_maximum(rare, 16, stream);
    sum += x;
    late += x != 0 ? 1 : 0;
  }
  CHECK(late == Approx(kDraws * -std::expm1(-16e-3)).epsilon(0.05));
  CHECK(sum / kDraws == Approx(16e-3 * 0.05).epsilon(0.05));
}

TEST_CASE("a host that runs ahead absorbs stalls and does not pass its noise on") {
  HostNoise profile;
  profile.host_sigma = 0.1;
  profile.stalls_per_hour = 3600;
  profile.stall_mean = seconds(0.1);
  const MemberNoise bound = noise_of(profile, {0.5, 0.6, 0}, 1), ahead = noise_of(profile, {0.6, 0.2, 0.4}, 1);
  CHECK(bound.sigma_s > 0);
  CHECK(ahead.sigma_s == 0);
  CHECK(ahead.stalls < 0.05 * bound.stalls);
  // The lead grows over the interval: two halves see what the whole sees.
  const MemberNoise whole = noise_of(profile, {0.6, 0.2, 0.1}, 1);
  const MemberNoise halves = noise_of(profile, {{0.3, 0.1, 0.1}, {0.3, 0.1, 0.3}}, 1);
  CHECK(halves.stalls == Approx(whole.stalls).epsilon(1e-9));
}

// By hand: stalls of mean m come at `rate`. A host that begins with its device and issues in h what takes d there is
// ahead by y (d / h - 1) after y seconds of its own, so that of the stalls that fall while it gains its lead
// rate * m h / (d - h) count. At the end it waits for its device, and what begins u before that counts with exp(-u /
// m).
TEST_CASE("stalls count while a host gains its lead and where it waits for its device, by the host's own clock") {
  HostNoise profile;
  profile.stalls_per_hour = 3600;
  profile.stall_mean = seconds(0.05);
  const double m = 0.05, d = 0.012, h = 0.004;
  std::vector<IssuedWork> ramp;
  for (int i = 0; i < 200; ++i) ramp.push_back({d, h, i * (d - h)});
  CHECK(noise_of(profile, ramp, 1).stalls == Approx(m * h / (d - h)).epsilon(1e-6));
  CHECK(noise_of(profile, {0, 1, 1}, 1).stalls == Approx(m).epsilon(1e-6));
  CHECK(noise_of(profile, {0, 0.02, 0.02}, 1).stalls == Approx(m * (1 - std::exp(-0.4))).epsilon(1e-9));
  // A host that is always late: all of its time.
  CHECK(noise_of(profile, {h, d, 0}, 1).stalls == Approx(d).epsilon(1e-9));
}
