#include "run/convergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/codec.hpp"
#include "core/quantile.hpp"
#include "core/random.hpp"

namespace tw {
namespace {

constexpr double kFarthest = 2;  // beyond the points, as a factor of the batch size

std::vector<ConvergencePoint> sorted_points(const Convergence& c) {
  std::vector<ConvergencePoint> points = c.points;
  std::sort(points.begin(), points.end(),
            [](const ConvergencePoint& a, const ConvergencePoint& b) { return a.gbs < b.gbs; });
  return points;
}

double reference_of(const ConvergencePoint& p) {
  return p.reference > 0 ? p.reference : p.samples;
}

// Points that count for the scorer (mlcommons/logging, rcp_checker): none below the batch that converges fastest; then,
// in one pass from small to large batches, none that needs more samples than the line between those left beside it.
std::vector<ConvergencePoint> pruned(std::vector<ConvergencePoint> points) {
  const auto fastest = std::min_element(
      points.begin(), points.end(),
      [](const ConvergencePoint& a, const ConvergencePoint& b) { return reference_of(a) < reference_of(b); });
  points.erase(points.begin(), fastest);
  for (size_t i = 1; i + 1 < points.size();) {
    const ConvergencePoint &a = points[i - 1], &b = points[i + 1];
    const double share = double(points[i].gbs - a.gbs) / double(b.gbs - a.gbs);
    const double line = reference_of(a) + share * (reference_of(b) - reference_of(a));
    if (reference_of(points[i]) > line)
      points.erase(points.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  return points;
}

}  // namespace

SamplesToTarget samples_to_target(const Convergence& c, double gbs) {
  const auto points = sorted_points(c);
  if (points.size() == 1) return {points[0].samples, points[0].sd};
  size_t i = 1;  // the piece between points i - 1 and i
  while (i + 1 < points.size() && gbs > points[i].gbs) ++i;
  const ConvergencePoint &a = points[i - 1], &b = points[i];
  const double share = std::log(gbs / a.gbs) / std::log(static_cast<double>(b.gbs) / a.gbs);
  SamplesToTarget s;
  s.mean = a.samples * std::pow(b.samples / a.samples, share);
  // The spread is not extrapolated: its slope between two points is mostly chance.
  const double inside = std::clamp(share, 0.0, 1.0);
  s.sd = s.mean * ((1 - inside) * a.sd / a.samples + inside * b.sd / b.samples);
  return s;
}

std::string convergence_problem(const Convergence& c, double gbs) {
  const auto points = sorted_points(c);
  if (gbs >= points.front().gbs / kFarthest && gbs <= points.back().gbs * kFarthest) return "";
  return fmt::format("a global batch of {:.0f} is far outside the convergence data of {} ({} to {})", gbs, c.name,
                     points.front().gbs, points.back().gbs);
}

std::string convergence_warning(const Convergence& c, double gbs) {
  const auto points = sorted_points(c);
  if (gbs >= points.front().gbs && gbs <= points.back().gbs) return "";
  return fmt::format(
      "samples to the target at a global batch of {:.0f} are extrapolated: the convergence data of {} end at {}", gbs,
      c.name, gbs < points.front().gbs ? points.front().gbs : points.back().gbs);
}

double evaluation_interval(const Convergence& c, double gbs) {
  return c.evaluation_interval + c.evaluation_interval_per_gbs * gbs;
}

double draw_samples(const Convergence& c, double gbs, double first, double interval, uint64_t seed) {
  const SamplesToTarget target = samples_to_target(c, gbs);
  // The reference runs met their target somewhere in the interval before the evaluation that told so: on average half
  // an interval earlier, with the variance of a uniform rounding on top of their own (Sheppard's correction).
  const double rounding = c.reference_interval > 0 ? c.reference_interval : evaluation_interval(c, gbs);
  const double mean = std::max(0.1 * target.mean, target.mean - rounding / 2);
  const double variance = std::max(0.0, target.sd * target.sd - rounding * rounding / 12);
  auto stream = random_stream(seed, "samples to target", 0);
  const double z = normal_quantile(uniform(stream));
  const double log_variance = std::log1p(variance / (mean * mean));
  const double need = mean * std::exp(z * std::sqrt(log_variance) - log_variance / 2);
  if (interval <= 0) return need + rounding / 2;
  const double begin = first > 0 ? first : interval;
  return begin + std::max(0.0, std::ceil((need - begin) / interval - 1e-9)) * interval;
}

double reference_samples(const Convergence& c, double gbs) {
  const auto points = pruned(sorted_points(c));
  for (const ConvergencePoint& p : points)
    if (p.gbs == gbs) return reference_of(p);
  if (points.size() == 1 || gbs < points.front().gbs) return reference_of(points.front());
  size_t i = 1;
  while (i + 1 < points.size() && gbs > points[i].gbs) ++i;
  const ConvergencePoint &a = points[i - 1], &b = points[i];
  return reference_of(a) + (gbs - a.gbs) / (b.gbs - a.gbs) * (reference_of(b) - reference_of(a));
}

void ConvergencePoint::describe(Description<ConvergencePoint>& d) {
  d.object("convergence_point", "Reference runs at one global batch size.");
  d.required("gbs", &ConvergencePoint::gbs, "global batch size, in samples", between(1, 1e9));
  d.required("samples", &ConvergencePoint::samples, "mean samples to the target", above(0));
  d.optional("sd", &ConvergencePoint::sd, "standard deviation over the runs, in samples");
  d.optional("reference", &ConvergencePoint::reference,
             "mean without the least and the greatest run, which the scorer compares submissions with; 0: samples");
  d.optional("runs", &ConvergencePoint::runs, "reference runs", between(0, 1e6));
  d.optional("learning_rate", &ConvergencePoint::learning_rate, "learning rate that they were tuned to");
}

void Convergence::describe(Description<Convergence>& d) {
  d.object("convergence", "Samples to the target quality against the global batch size.");
  d.required("name", &Convergence::name, "benchmark");
  d.optional("sample", &Convergence::sample, "what one sample is");
  d.optional("rcp_version", &Convergence::rcp_version, "round whose reference convergence points these are");
  d.required("points", &Convergence::points, "reference runs, one entry for each global batch size");
  d.optional("first_evaluation", &Convergence::first_evaluation,
             "samples before the first evaluation, where the scenario gives no evaluation_interval");
  d.optional("evaluation_interval", &Convergence::evaluation_interval,
             "samples between evaluations, where the scenario gives none");
  d.optional("evaluation_interval_per_gbs", &Convergence::evaluation_interval_per_gbs,
             "and this many more for each sample of the global batch");
  d.optional("evaluation_samples", &Convergence::evaluation_samples,
             "samples of one evaluation, where the scenario gives none");
  d.optional("reference_interval", &Convergence::reference_interval,
             "samples between evaluations of the reference runs, which the points are rounded up to; 0: as "
             "evaluation_interval");
  d.optional("note", &Convergence::note, "for whom the points hold");
  d.optional("source", &Convergence::source, "where the numbers come from");
}

}  // namespace tw
