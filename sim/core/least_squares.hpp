// Linear least squares that says which unknowns the data cannot tell apart.
#pragma once

#include <cstddef>
#include <vector>

namespace tw {

struct LeastSquares {
  std::vector<double> change;          // of each unknown; 0 where it is held
  std::vector<double> standard_error;  // of each that is not held, from the residuals
  // Unknowns that are held, and those whose sum does nearly what they do; empty where nothing in the data moves them.
  struct Held {
    size_t unknown = 0;
    std::vector<size_t> like;
  };
  std::vector<Held> held;
};

// Changes of the unknowns that bring `columns` (one an unknown: what a unit of it adds to each reading) closest to
// `missing`. In their order, an unknown is held when those before it explain all but `apart` of its column's squares
// (pivoted Gram-Schmidt; 0.01 is a variance inflation of 100, Belsley 1991).
LeastSquares least_squares(const std::vector<std::vector<double>>& columns, const std::vector<double>& missing,
                           double apart = 0.01);

}  // namespace tw
