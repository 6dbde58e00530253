// An accelerator profile: what stands in models/accelerators/*.json.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "hardware/activity.hpp"
#include "hardware/collective_library.hpp"
#include "hardware/precision.hpp"

namespace tw {

// One measured matrix product of m x k by k x n. A precision that was not measured is absent.
struct GemmPoint {
  long m = 0, n = 0, k = 0;
  std::optional<Time> bf16, fp8;
  std::map<std::string, Time> times;  // of other precisions
  static void describe(Description<GemmPoint>& d);
};

// One measured causal flash attention of batch 1.
struct AttentionPoint {
  long heads = 0, sequence = 0, head_dim = 128;
  Time forward, backward;
  static void describe(Description<AttentionPoint>& d);
};

// How the board's limiter acts in time (hardware/board_limiter.hpp). Shares are of the board's limit.
struct LimiterProfile {
  Time period;                // between two decisions
  Time seen;                  // end of a period that a decision looks at
  double fast_share = 1;      // held from one decision to the next, whatever the mean is
  Time window;                // over which the mean is held at held_share
  double least_share = 1;     // never held lower than that
  double clock_exponent = 0;  // clock over dynamic power
  Frequency clock;            // highest
  double products_clock = 1;  // share of it from which on matrix products run no faster and draw no more
  std::string source;
  static void describe(Description<LimiterProfile>& d);
};

// Watts of one board by activity, as if no limit held it back (hints 14 to 16).
struct GpuPower {
  Power idle, context, spin, launch_bound, gemm_bf16, gemm_fp8, attention_forward, attention_backward, memory_bound,
      copy, collective, convolution;
  // Above the limit the clock falls: time grows with (uncapped dynamic power / allowed dynamic power) ^ exponent.
  double throttle_exponent = 0.35;
  Power fitted_limit;           // the board limit that the exponent was fitted at; a cap below it is an extrapolation
  double held_share = 1;        // mean power the limiter settles at, over the limit
  double memory_reserve = 0.2;  // share of dynamic power below which memory-bound kernels feel the clock too
  std::map<std::string, Power> gemm_other;  // matrix products in other precisions; absent: as in FP8
  double zero_data = 1;  // dynamic power of matrix products and copies of zeros, over that of random data
  std::optional<LimiterProfile> limiter;  // absent: not known, only the mean is held
  std::string source;
  Power of(Activity a) const;
  static void describe(Description<GpuPower>& d);
};

// Grouped products: the experts' of a layer, in one call. Shares are of what large dense products and copies reach, so
// that chips and precisions keep what they reach of their peaks. Defaults: fitted on reference/gpu_lab_4/grouped.csv
// (BF16, H100 and H200, 402 products of 4 to 128 experts with 64 to 2,048 rows): mean error 5 % forward and of input
// gradients, 8 % of weight gradients.
struct GroupedProducts {
  double of_dense = 0.97, of_copy = 0.9;
  Time launch = seconds(15e-6);
  double sharpness = 6, weight_sharpness = 1.5;  // of the change from bytes to products; of weights' gradients
  static void describe(Description<GroupedProducts>& d);
};

struct Accelerator {
  std::string name;
  Bytes memory;  // as the driver reports it
  Power board_limit;
  FlopRate peak_bf16, peak_fp8, peak_fp32;            // dense; zero = not supported
  std::map<std::string, FlopRate> peaks;              // of other precisions
  std::map<std::string, PrecisionFormat> precisions;  // of its own, beside the field's
  // What kernels reach of the efficiency that their tables say: matrix products by precision, "attention"; absent: 1.
  std::map<std::string, double> efficiency;
  Bandwidth memory_bandwidth;  // datasheet
  Bandwidth host_bandwidth;    // payload over its PCIe link, one direction; 0: no limit
  Bandwidth copy_bandwidth;    // plateau of a large copy, read plus written
  Bandwidth norm_bandwidth;    // of fused norms
  double multiprocessors = 0;  // 0: unknown, kernels follow the memory alone
  Frequency clock;             // highest of the multiprocessors
  Time graph_floor;            // shortest kernel, replayed in a CUDA graph
  Time launch_floor;           // nothing asks for it; files of earlier versions have it
  std::vector<GemmPoint> gemm;
  std::vector<AttentionPoint> attention;
  GroupedProducts grouped;
  GpuPower power;
  std::optional<CollectiveLibrary> collectives;  // its maker's; absent: NCCL
  std::string transfer_from;     // profile whose efficiencies are to be transferred (hardware/transfer.hpp)
  std::string transferred_from;  // empty when measured; else the board whose efficiencies were transferred
  std::string source;
  FlopRate peak(const Precision& p) const;  // dense; zero = not supported
  // Of the field's precisions and its own: what they are called, and the one of a name.
  std::vector<std::string> precision_names() const;
  std::optional<Precision> precision(const std::string& name) const;
  static void describe(Description<Accelerator>& d);
};

// Faults of the maps of an accelerator: names that nothing reads, shares, peaks, times and watts that are not above 0.
void check_accelerator(const Accelerator& a, const ReadContext& at);

}  // namespace tw
