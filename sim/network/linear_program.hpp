// A small linear program.
#pragma once

#include <vector>

namespace tw::network {

// Maximise x[0] for x >= 0 under sum_j rows[i][j] x[j] <= limits[i], with limits >= 0 (so x = 0 is a start). `prices`:
// by how much x[0] would grow for each unit that limit i does. Primal simplex on a dense table, to
// 1e-10; `work`: cells that it may still touch, less those that it did. When they are used up x is a way that keeps to
// the limits, not the best.
struct LinearSolution {
  std::vector<double> x, prices;
};
LinearSolution largest_first(std::vector<std::vector<double>> rows, const std::vector<double>& limits, double& work);

}  // namespace tw::network
