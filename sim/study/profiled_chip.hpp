// A profiled workload on another chip than the one that it was measured on.
#pragma once

#include <map>
#include <string>

#include "hardware/accelerator.hpp"
#include "workload/architecture.hpp"

namespace tw {

// Time on `here` over that on `there` of work with this mix of activities: products, convolutions and attention go with
// the peaks that the chips reach in BF16, memory-bound kernels and copies with their bandwidth; launches, waits and
// exchanges take as long.
double chip_ratio(const std::map<std::string, double>& activities, const Accelerator& there, const Accelerator& here);

// Scales the times of a workload that names its chip to `here`. Returns what to warn of; empty where the chips are the
// same or no chip is named. InputError when the named profile cannot be read.
std::string scale_to_chip(ProfiledWorkload& workload, const Accelerator& here);

}  // namespace tw
