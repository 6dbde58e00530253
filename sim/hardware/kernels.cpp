#include "hardware/kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace tw {
namespace {

struct Sample {
  std::array<double, 3> at{};  // logarithms of the shape
  double log_efficiency = 0;
};

// Shepard's inverse-distance weighting (1968) of log efficiency over the scattered shapes that labs measure. It keeps
// every measured point, stays within their range, and degrades to the nearest shape outside it.
double interpolate(const std::vector<Sample>& samples, const std::array<double, 3>& at) {
  double weights = 0, sum = 0;
  for (const Sample& s : samples) {
    double distance2 = 0;
    for (size_t i = 0; i < at.size(); ++i) distance2 += (s.at[i] - at[i]) * (s.at[i] - at[i]);
    if (distance2 < 1e-12) return s.log_efficiency;
    const double weight = 1 / (distance2 * distance2);
    weights += weight;
    sum += weight * s.log_efficiency;
  }
  return sum / weights;
}

// Multiprocessors times clock of an H100 or H200, cycles a second.
constexpr double kH100Cycles = 132 * 1.98e9;

// A precision that the board lacks runs as the one whose kernels stand in for it.
double peak(const Accelerator& a, const Precision& p) {
  const double own = a.peak(p).value();
  return own > 0 || p.like == nullptr ? own : a.peak(*p.like).value();
}

// Their logarithms are kept as long as the points are the same: a search for plans asks for thousands of products.
const std::vector<Sample>& gemm_samples(const Accelerator& a, const Precision& p) {
  struct Known {
    std::vector<std::array<double, 4>> points;  // shape and rate
    std::vector<Sample> samples;
  };
  static thread_local std::map<Precision, Known> known_of;
  Known& known = known_of[p];
  const double peak_rate = peak(a, p);
  const auto key = p == Precision::bf16 ? &GemmPoint::bf16 : p == Precision::fp8 ? &GemmPoint::fp8 : nullptr;
  const std::string name = p.name();
  const auto time_of = [&](const GemmPoint& g) {
    if (key != nullptr) return g.*key;
    const auto found = g.times.find(name);
    return found == g.times.end() ? std::nullopt : std::optional(found->second);
  };
  size_t count = 0;
  for (const GemmPoint& g : a.gemm) {
    const auto time = time_of(g);
    if (!time) continue;
    const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
    const std::array<double, 4> point{m, n, k, 2 * m * n * k / time->value() / peak_rate};
    const size_t i = count++;
    if (i < known.points.size() && known.points[i] == point) continue;
    known.points.resize(i), known.samples.resize(i);
    known.points.push_back(point);
    known.samples.push_back({{std::log(m), std::log(n), std::log(k)}, std::log(point[3])});
  }
  known.points.resize(count), known.samples.resize(count);
  return known.samples;
}

// Samples of the precision, or else of those that stand in for it; in the last resort of BF16's partner.
const std::vector<Sample>& nearest_samples(const Accelerator& a, const Precision& precision) {
  for (const Precision* p = &precision; p != nullptr; p = p->like) {
    const auto& samples = gemm_samples(a, *p);
    if (!samples.empty()) return samples;
  }
  return gemm_samples(a, Precision::fp8);
}

double efficiency_factor(const Accelerator& a, const std::string& kernels) {
  const auto found = a.efficiency.find(kernels);
  return found == a.efficiency.end() ? 1 : found->second;
}

// Small heads give a matrix unit less to do for each exponential, and chips gained less of these than of products;
// heads whose values are smaller than their queries have kernels of their own. Beside those of heads of 128.
double of_heads(const Accelerator& a, const AttentionShape& shape) {
  if (shape.uneven) return efficiency_factor(a, "attention_uneven");
  const double below_128 = std::clamp(std::log2(128 / shape.head_dim), 0.0, 1.0);
  return std::pow(efficiency_factor(a, "attention_64"), below_128);
}

double attention_rate(const Accelerator& a, const AttentionShape& shape, bool backward) {
  std::vector<Sample> samples;
  double longest = 0;
  for (const AttentionPoint& point : a.attention) {
    longest = std::max(longest, static_cast<double>(point.sequence));
    const auto heads = static_cast<double>(point.heads), tokens = static_cast<double>(point.sequence),
               size = static_cast<double>(point.head_dim);
    const AttentionShape measured{1, heads, tokens, tokens, size, true};
    const double work = attention_flops(measured) * (backward ? attention_backward_work : 1);
    const double time_s = (backward ? point.backward : point.forward).value();
    samples.push_back({{std::log(heads), std::log(tokens), std::log(size)}, std::log(work / time_s)});
  }
  if (samples.empty()) return 0.5 * a.peak_bf16.value();
  // A long-and-thin shape fills the device as its geometric mean does. A kernel works on blocks of a head's queries: of
  // sequences longer than any that was measured these fill it as as many of more heads do (reference/gpu_lab_4).
  const double tokens = std::sqrt(shape.query_tokens * shape.key_tokens), beyond = std::max(1.0, tokens / longest);
  return efficiency_factor(a, "attention") * of_heads(a, shape) *
         std::exp(interpolate(samples, {std::log(shape.heads * shape.batch * beyond), std::log(tokens / beyond),
                                        std::log(shape.head_dim)}));
}

// Dropout draws a random number for each score, which costs the same whatever the head's size: these shares of the
// kernel's time with heads of 128 (reference/gpu_lab_11/attention_dropout.csv).
constexpr double kDropoutForward = 1.07, kDropoutBackward = 0.2, kDropoutHead = 128;

// Three of backward's five products are over a head's queries and keys, two over its values, and what a kernel keeps
// grows with the larger: with 192 and 128 channels it takes 1.40 times as long as with 128 of both, forward 1.25 times,
// as its mean size has it (reference/gpu_lab_13/attention_latent.csv).
constexpr double kUnevenBackward = 1.40 / 1.25;

double attention_time_s(const Accelerator& a, const AttentionShape& shape, bool backward) {
  const auto kernel_s = [&](const AttentionShape& s) {
    return attention_flops(s) * (backward ? attention_backward_work : 1) / attention_rate(a, s, backward) *
           (backward && s.uneven ? kUnevenBackward : 1);
  };
  double time_s = kernel_s(shape);
  if (shape.dropout) {
    AttentionShape scores = shape;
    scores.head_dim = kDropoutHead;
    time_s += (backward ? kDropoutBackward : kDropoutForward) * kernel_s(scores);
  }
  return std::max(a.graph_floor.value(), time_s);
}

// Products in BF16 whose sides are no multiples of 8 elements (16 bytes) run in older kernels, whatever their shape:
// "even" and "odd" hold what these reach of the peak where the worst side divides by 2 or not at all; absent: no
// slower. Lower bound of the time of `flops`, seconds.
double unaligned_s(const Accelerator& a, double m, double n, double k, double flops) {
  const auto rest = [&](double parts) {
    return std::max(
        {std::fmod(std::floor(m), parts), std::fmod(std::floor(n), parts), std::fmod(std::floor(k), parts)});
  };
  if (rest(8) == 0) return 0;
  const auto found = a.efficiency.find(rest(2) == 0 ? "even" : "odd");
  return found == a.efficiency.end() ? 0 : flops / (peak(a, Precision::bf16) * found->second);
}

}  // namespace

double gemm_time_s(const Accelerator& a, const Precision& precision, double m, double n, double k) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  const auto& samples = nearest_samples(a, precision);
  const double efficiency =
      efficiency_factor(a, precision.name()) *
      (samples.empty() ? 0.7 : std::min(1.0, std::exp(interpolate(samples, {std::log(m), std::log(n), std::log(k)}))));
  const double slow_s = precision == Precision::bf16 ? unaligned_s(a, m, n, k, 2 * m * n * k) : 0;
  return std::max({a.graph_floor.value(), slow_s, 2 * m * n * k / (peak(a, precision) * efficiency)});
}

double grouped_gemm_time_s(const Accelerator& a, const Precision& precision, double groups, double m, double n,
                           double k, bool weight_gradient) {
  constexpr double kLarge = 8192;
  if (groups <= 0 || m <= 0 || n <= 0 || k <= 0) return 0;
  const GroupedProducts& g = a.grouped;
  const double element = precision.operand_bytes;
  const double dense_s = gemm_time_s(a, precision, kLarge, kLarge, kLarge);
  const double products_s = groups * m * n * k / (kLarge * kLarge * kLarge) * dense_s / g.of_dense;
  const double operands = element * groups * (n * k + m * k) + 2 * groups * m * n;
  const double moves_s = operands / (a.copy_bandwidth.value() * g.of_copy);
  const double sharpness = weight_gradient ? g.weight_sharpness : g.sharpness;
  return g.launch.value() + std::pow(std::pow(products_s, sharpness) + std::pow(moves_s, sharpness), 1 / sharpness);
}

double accumulating_time_s(const Accelerator& a, double product_s, double bytes) {
  // How well the product hides them: within 4 % in the mean of what was measured with gradients in BF16 and in FP32
  // (reference/gpu_lab_11/gradient_accumulation.csv).
  constexpr double kSharpness = 1.2;
  const double moves_s = bytes / a.copy_bandwidth.value();
  return std::pow(std::pow(product_s, kSharpness) + std::pow(moves_s, kSharpness), 1 / kSharpness);
}

double attention_flops(const AttentionShape& s) {
  return 4 * s.batch * s.heads * s.query_tokens * s.key_tokens * s.head_dim * (s.causal ? 0.5 : 1);
}

double attention_forward_time_s(const Accelerator& a, const AttentionShape& shape) {
  return attention_time_s(a, shape, false);
}

double attention_backward_time_s(const Accelerator& a, const AttentionShape& shape) {
  return attention_time_s(a, shape, true);
}

double memory_time_s(const Accelerator& a, double bytes, double efficiency) {
  if (bytes <= 0) return 0;
  return std::max(a.graph_floor.value(), bytes / (a.copy_bandwidth.value() * efficiency));
}

double instruction_time_s(const Accelerator& a, double h100_s, const char* kernels) {
  constexpr double kH100Peak = 989.4e12;
  const double cycles = a.multiprocessors * a.clock.value();
  const double speed = cycles > 0 ? cycles / kH100Cycles : a.peak_bf16.value() / kH100Peak;
  return h100_s / (speed * efficiency_factor(a, kernels));
}

double instruction_stretch(const Accelerator& a, double share) {
  // Of an H100, whose copies reach 3.025 TB/s. Kernels of which the share is told take so much less long on an H200,
  // with as many multiprocessors at the same clock and 1.41 times the bandwidth (reference/gpu_lab_14).
  constexpr double kBytesPerCycle = 3.025e12 / kH100Cycles;
  const double cycles = a.multiprocessors * a.clock.value();
  if (share <= 0 || cycles <= 0) return 1;
  return 1 + share * std::max(0.0, a.copy_bandwidth.value() / (kBytesPerCycle * cycles) - 1);
}

}  // namespace tw
