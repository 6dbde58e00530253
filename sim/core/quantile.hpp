// Quantiles of distributions, by Boost.Math in one file: its headers take seconds to compile.
#pragma once

namespace tw {

// p in (0, 1).
double normal_quantile(double p);  // of mean 0 and deviation 1
double student_quantile(double degrees_of_freedom, double p);

}  // namespace tw
