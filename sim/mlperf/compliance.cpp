#include "mlperf/compliance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tw {

void Compliance::take(const MllogEvent& e) {
  for (size_t i = 0; i < kRequired.size(); ++i)
    if (e.key == kRequired[i].key) ++seen_[i];
  if (e.key != "eval_accuracy") return;
  const std::string metric = e.text("metric");
  if (!metric_) metric_ = metric;
  if (metric != *metric_) return;
  ++evaluations_;
  if (!e.value.number || std::abs(*e.value.number) > 1e15) return;  // no accuracy
  last_ = e.value.number;
  least_ = std::min(least_.value_or(*last_), *last_);
  most_ = std::max(most_.value_or(*last_), *last_);
}

std::string Compliance::broken_rule(const std::string& division, const Benchmark* b) const {
  for (size_t i = 0; i < kRequired.size(); ++i) {
    if (seen_[i] == 0) return fmt::format("{} is not logged", kRequired[i].key);
    if (seen_[i] > 1 && kRequired[i].once)
      return fmt::format("{} is logged {} times, not once", kRequired[i].key, seen_[i]);
  }
  if (division != "closed" || b == nullptr || !last_) return "";
  if (b->lower_is_better ? *least_ > b->target : *most_ < b->target)
    return fmt::format("no eval_accuracy meets the target of {:g}", b->target);
  if (evaluations_ < b->least_evaluations)
    return fmt::format("{} evaluation, the rules ask for {}", evaluations_, b->least_evaluations);
  return "";
}

}  // namespace tw
