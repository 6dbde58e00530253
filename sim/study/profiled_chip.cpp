#include "study/profiled_chip.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/document.hpp"
#include "hardware/gpu_power.hpp"
#include "hardware/transfer.hpp"

namespace tw {
namespace {

double reached_bf16(const Accelerator& a) {
  const auto share = a.efficiency.find("bf16");
  return a.peak_bf16.value() * (share == a.efficiency.end() ? 1 : share->second);
}

}  // namespace

double chip_ratio(const std::map<std::string, double>& activities, const Accelerator& there, const Accelerator& here) {
  const double compute = reached_bf16(there) / reached_bf16(here);
  const double memory = there.memory_bandwidth.value() / here.memory_bandwidth.value();
  double ratio = 0, shares = 0;
  for (const auto& [name, a] : Choices<Activity>::table()) {
    const auto found = activities.find(name);
    if (found == activities.end()) continue;
    const bool moves = a == Activity::memory_bound || a == Activity::copy;
    ratio += found->second * (clock_bound(a) ? compute : moves ? memory : 1);
    shares += found->second;
  }
  return ratio + std::max(0.0, 1 - shares);
}

std::string scale_to_chip(ProfiledWorkload& w, const Accelerator& here) {
  if (w.accelerator.empty()) return "";
  Accelerator there = load<Accelerator>(w.accelerator);
  complete_transfer(there, there.board_limit);
  if (there.peak_bf16 == here.peak_bf16 && there.memory_bandwidth == here.memory_bandwidth) return "";
  const double step = chip_ratio(w.activities, there, here);
  const double fixed = chip_ratio(w.fixed_activities.empty() ? w.activities : w.fixed_activities, there, here);
  w.fixed = seconds(w.fixed.value() * fixed);
  w.per_sample = seconds(w.per_sample.value() * step);
  w.evaluation_fixed = seconds(w.evaluation_fixed.value() * fixed);
  w.evaluation_per_sample = seconds(w.evaluation_per_sample.value() * step);
  return fmt::format(
      "{} was measured on {}: its times on {} are scaled by its activities and the two chips' peaks and bandwidths (a "
      "sample takes {:.2f}, the fixed part {:.2f} times as long)",
      w.name, there.name, here.name, step, fixed);
}

}  // namespace tw
