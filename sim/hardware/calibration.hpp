// From a laboratory's CSV files to the measured part of an accelerator profile, and from one profile to another
// board's.
#pragma once

#include <string>
#include <vector>

#include "hardware/accelerator.hpp"

namespace tw {

// GPUs that the matrix products of these folders (gemm.csv) were measured on, in order of appearance.
std::vector<std::string> lab_gpus(const std::vector<std::string>& lab_dirs);

// `datasheet` with the tables and bandwidths of the laboratory's rows for `gpu`:
// - gemm.csv: forward layouts; the time inside a CUDA graph where it was measured; launched one by one only from 30 us
// on
//   (shorter ones are bound by their launch); a shape measured several times takes the geometric mean.
// - attention.csv: causal rows; a batch counts as that many times the heads; geometric mean.
// - memory_ops.csv: bandwidth of the largest copy and of a norm, floor of a kernel in a graph, each from the first
//   folder that has the row.
// Folders may lack files, files may lack cells. InputError when no folder has a matrix product of that GPU.
Accelerator calibrated(const std::vector<std::string>& lab_dirs, const std::string& gpu, Accelerator datasheet);

// `datasheet` with the efficiencies of another, measured board. Every kernel keeps its distance from the roofline
// (Williams et al. 2009): time = measured time x (roofline time here / roofline time there), where the roofline time is
// the larger of FLOPs over the dense peak and bytes over the datasheet's memory bandwidth. Copies and norms keep their
// share of that bandwidth; floors stay. The board's watts are not touched.
Accelerator transferred(const Accelerator& measured, Accelerator datasheet);

// How well a shape is predicted from the others: each measured point left out in turn.
struct LeaveOneOut {
  std::string kernel;  // "BF16 matrix products", ...
  size_t points = 0;
  double median_pct = 0, p90_pct = 0, worst_pct = 0;  // absolute errors of time
  std::string worst;                                  // the shape
};
std::vector<LeaveOneOut> leave_one_out(const Accelerator& accelerator);

// Measured watts of power.csv beside the profile's.
struct PowerRow {
  std::string phase, activity;
  double measured_w = 0, profile_w = 0;
};
std::vector<PowerRow> power_rows(const std::vector<std::string>& lab_dirs, const std::string& gpu,
                                 const Accelerator& accelerator);

// Shapes that measurements cover: smallest and largest of each side.
struct GemmRange {
  bool measured = false;
  double low[3] = {0, 0, 0}, high[3] = {0, 0, 0};  // m, n, k
  std::string text() const;
};
GemmRange gemm_range(const Accelerator& accelerator);
// True when a side lies more than four times outside of it: interpolation then takes the nearest shapes' efficiency.
bool far_outside(const GemmRange& range, double m, double n, double k);

}  // namespace tw
