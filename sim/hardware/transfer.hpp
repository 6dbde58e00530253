// A board that was not measured, from one that was.
#pragma once

#include "hardware/accelerator.hpp"

namespace tw {

// Fills in what a profile with "transfer_from" leaves out: kernels, bandwidths and floors of the named profile, each at
// its distance from the roofline (calibration.hpp, transferred()); watts by activity in proportion to the boards' rated
// limits, `rated_limit` here (a cap below it caps, and changes no board). Does nothing without that key; kernels that
// stand in the profile itself stay. InputError when the named profile cannot be read or has no kernels.
void complete_transfer(Accelerator& accelerator, Power rated_limit);

}  // namespace tw
