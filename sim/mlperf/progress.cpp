#include "mlperf/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mlperf/imported_run.hpp"

namespace tw {
namespace {

constexpr std::array<const char*, 3> kKeys{"samples_count", "epoch_num", "step_num"};
constexpr double kNear = 1.1;      // an epoch padded to whole batches is at most a tenth longer
constexpr double kDisagree = 2.0;  // what is logged twice and differs by more is worth a word

bool near(double a, double b, double factor) {
  return a > 0 && b > 0 && a <= b * factor && b <= a * factor;
}

bool plausible(const Benchmark* b, double samples) {
  return b == nullptr || b->plausible_samples.size() != 2 ||
         (samples >= b->plausible_samples[0] && samples <= b->plausible_samples[1]);
}

}  // namespace

Mark mark_of(const MllogEvent& event) {
  for (size_t k = 0; k < kKeys.size(); ++k)
    if (const auto value = event.number(kKeys[k])) return {static_cast<Mark::Key>(k), *value};
  return {};
}

Progress::Progress(const ImportedRun& run, const Benchmark* benchmark, const std::array<double, 3>& most,
                   std::optional<double> expected)
    : benchmark_(benchmark), batch_(run.global_batch_size), sequence_(run.sequence), expected_(expected), most_(most) {
  if (!sequence_ && benchmark != nullptr && benchmark->sequence > 0) sequence_ = benchmark->sequence;
  find_epoch(run);
  for (size_t k = 0; k < kKeys.size(); ++k) {
    if (benchmark == nullptr || benchmark->progress.count(kKeys[k]) == 0) continue;
    // Of the meanings that give what any submission needed, that which the throughput bears out.
    double best = 1e300;
    for (const ProgressUnit unit : benchmark->progress.at(kKeys[k])) {
      const double samples = most[k] * scale(unit).value_or(0);
      double off = samples <= 0 ? 1e200 : plausible(benchmark, samples) ? 0 : 1e100;
      if (samples > 0 && expected && *expected > 0) off += std::abs(std::log(samples / *expected));
      if (off < best) best = off, unit_[k] = unit;
    }
  }
}

// train_samples holds the samples of an epoch or its steps. Where it is neither, the data set is what counts.
void Progress::find_epoch(const ImportedRun& run) {
  const double data_set = benchmark_ != nullptr ? benchmark_->epoch_samples : 0;
  if (data_set > 0) epoch_ = data_set;
  if (!run.train_samples || (benchmark_ != nullptr && data_set <= 0)) return;
  const double logged = *run.train_samples;
  if (data_set <= 0)
    epoch_ = logged;
  else if (batch_ && *batch_ > 1 && near(logged * *batch_, data_set, kNear))
    epoch_ = logged * *batch_;
  else if (!near(logged, data_set, kNear))
    odd_epoch_ = fmt::format("train_samples is {:.0f}, an epoch of {} has {:.0f} samples, which count", logged,
                             benchmark_->name, data_set);
}

std::optional<double> Progress::scale(ProgressUnit unit) const {
  switch (unit) {
    case ProgressUnit::samples:
      return 1;
    case ProgressUnit::steps:
      return batch_;
    case ProgressUnit::epochs:
      return epoch_;
    case ProgressUnit::tokens:
      return sequence_ ? std::optional(1 / *sequence_) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> Progress::samples(const Mark& mark) const {
  if (!mark.known()) return std::nullopt;
  const auto by = scale(unit_[mark.key]);
  return by ? std::optional(mark.value * *by) : std::nullopt;
}

std::string Progress::source(const Mark& mark) const {
  if (!mark.known()) return "";
  const ProgressUnit unit = unit_[mark.key];
  if (unit == ProgressUnit::epochs) return fmt::format("{} x train_samples", kKeys[mark.key]);
  if (mark.key == Mark::samples_count && unit == ProgressUnit::samples) return kKeys[mark.key];
  return fmt::format("{}, in {}", kKeys[mark.key], choice_name(unit));
}

std::vector<std::string> Progress::doubts(double samples) const {
  std::vector<std::string> all;
  if (!plausible(benchmark_, samples))
    all.push_back(fmt::format("{:.0f} samples to the target, where submissions of {} needed {:.0f} to {:.0f}", samples,
                              benchmark_->name, benchmark_->plausible_samples[0], benchmark_->plausible_samples[1]));
  if (expected_ && !near(samples, *expected_, kDisagree))
    all.push_back(
        fmt::format("{:.0f} samples to the target, but {:.0f} by the logged throughput", samples, *expected_));
  const double by_steps = most_[Mark::step_num] * batch_.value_or(0);
  if (by_steps > 0 && !near(samples, by_steps, kDisagree))
    all.push_back(fmt::format("{:.0f} samples to the target, but {:.0f} by step_num", samples, by_steps));
  if (!odd_epoch_.empty() && most_[Mark::epoch_num] > 0 && unit_[Mark::epoch_num] == ProgressUnit::epochs)
    all.push_back(odd_epoch_);
  return all;
}

}  // namespace tw
