#include "network/linear_program.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace tw::network {

LinearSolution largest_first(std::vector<std::vector<double>> rows, const std::vector<double>& limits, double& work) {
  constexpr double kGain = 1e-11, kPivot = 1e-9;
  const size_t m = rows.size(), n = m == 0 ? 0 : rows.front().size(), width = n + m + 1;
  std::vector<size_t> basis(m);
  for (size_t i = 0; i < m; ++i) {
    rows[i].resize(width, 0);
    rows[i][n + i] = 1;
    // Limits that are reached together hold up the search for many steps: a little apart they do not.
    constexpr double kApart = 1e-10, kGolden = 0.6180339887498949;
    rows[i][width - 1] =
        limits[i] + kApart * (static_cast<double>(i + 1) * kGolden - std::floor(static_cast<double>(i + 1) * kGolden));
    basis[i] = n + i;
  }
  std::vector<double> gain(width, 0);  // of each variable that enters
  if (n > 0) gain[0] = 1;
  for (; work > 0; work -= static_cast<double>(m * width)) {
    size_t in = 0, out = m;
    for (size_t j = 1; j + 1 < width; ++j)
      if (gain[j] > gain[in]) in = j;
    if (gain[in] <= kGain) break;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < m; ++i) {
      if (rows[i][in] <= kPivot) continue;
      const double room = std::max(0.0, rows[i][width - 1]) / rows[i][in];
      if (room < least) out = i, least = room;
    }
    if (out == m) break;
    const double pivot = rows[out][in];
    for (double& v : rows[out]) v /= pivot;
    const auto clear = [&](std::vector<double>& row) {
      const double factor = row[in];
      if (factor == 0) return;
      for (size_t j = 0; j < width; ++j) row[j] -= factor * rows[out][j];
      row[in] = 0;
    };
    for (size_t i = 0; i < m; ++i)
      if (i != out) clear(rows[i]);
    clear(gain);
    basis[out] = in;
  }
  LinearSolution solved{std::vector<double>(n, 0), std::vector<double>(m, 0)};
  for (size_t i = 0; i < m; ++i) {
    if (basis[i] < n) solved.x[basis[i]] = std::max(0.0, rows[i][width - 1]);
    solved.prices[i] = std::max(0.0, -gain[n + i]);
  }
  return solved;
}

}  // namespace tw::network
