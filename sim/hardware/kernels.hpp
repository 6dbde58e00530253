// Kernel times of one accelerator, at full clock and without a board limit: what a short burst shows. The limit is
// applied once, from power (gpu_power.hpp).
#pragma once

#include "hardware/accelerator.hpp"

namespace tw {

// Seconds of a matrix product of m x k by k x n: 2 m n k FLOPs at an efficiency interpolated between the measured
// shapes of the profile in log(m), log(n), log(k). A precision without measurements takes the other's efficiency
// against its own peak. Never faster than the peak, never shorter than the graph floor.
double gemm_time_s(const Accelerator& accelerator, const Precision& precision, double m, double n, double k);

// Seconds of one kernel that does such a product for each of `groups` experts: as fast as products get or as their
// operands move, whichever is slower, and a launch. Weight gradients (`weight_gradient`) fill in less well.
double grouped_gemm_time_s(const Accelerator& accelerator, const Precision& precision, double groups, double m,
                           double n, double k, bool weight_gradient);

// Seconds of a product that takes `product_s` where its result is written, and that moves `bytes` more since it adds to
// what is there.
double accumulating_time_s(const Accelerator& accelerator, double product_s, double bytes);

struct AttentionShape {
  double batch = 1;
  double heads = 1;         // query heads on this rank
  double query_tokens = 1;  // queries on this rank
  double key_tokens = 1;    // keys each query may see
  double head_dim = 128;    // channels of a head: mean of its queries' and its values'
  bool causal = true;
  bool dropout = false;  // of scores, in the kernel
  bool uneven = false;   // a head's values have fewer channels than its queries and keys (latent attention)
};

// FLOPs of the scores and their use, forward: 4 * batch * heads * queries * keys * head_dim, half of it when causal.
double attention_flops(const AttentionShape& shape);
// Backward does 2.5 times the forward work (it recomputes the scores).
inline constexpr double attention_backward_work = 2.5;
double attention_forward_time_s(const Accelerator& accelerator, const AttentionShape& shape);
double attention_backward_time_s(const Accelerator& accelerator, const AttentionShape& shape);

// Seconds of a kernel that moves `bytes` (read plus written) at `efficiency` of the copy plateau.
double memory_time_s(const Accelerator& accelerator, double bytes, double efficiency);
// Its time over that, where `share` of its time on an H100 is that of its instructions: these follow multiprocessors
// and clock, of which newer chips have gained far less than of memory bandwidth. At least 1; 1 where they are not
// known.
double instruction_stretch(const Accelerator& accelerator, double share);
// Seconds of kernels bound by their instructions that take `h100_s` on an H100; on a chip that does not tell its
// multiprocessors and clock in proportion to the products' peak. `kernels`: a name in the profile's efficiencies.
double instruction_time_s(const Accelerator& accelerator, double h100_s, const char* kernels);

}  // namespace tw
