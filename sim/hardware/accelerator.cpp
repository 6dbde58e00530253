#include "hardware/accelerator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/codec.hpp"
#include "core/text.hpp"

namespace tw {
namespace {
constexpr double kLeastShare = 1e-3;  // below it a step has no end
}

Power GpuPower::of(Activity a) const {
  constexpr Power GpuPower::*watts[] = {&GpuPower::idle,
                                        &GpuPower::context,
                                        &GpuPower::spin,
                                        &GpuPower::launch_bound,
                                        &GpuPower::gemm_bf16,
                                        &GpuPower::gemm_fp8,
                                        &GpuPower::attention_forward,
                                        &GpuPower::attention_backward,
                                        &GpuPower::memory_bound,
                                        &GpuPower::copy,
                                        &GpuPower::collective,
                                        &GpuPower::convolution};
  static_assert(std::size(watts) == kActivities);
  return this->*watts[static_cast<size_t>(a)];
}

void LimiterProfile::describe(Description<LimiterProfile>& d) {
  d.object("limiter", "How a board's power limiter acts in time.");
  d.required("period", &LimiterProfile::period, "between two decisions", above(0));
  d.required("seen", &LimiterProfile::seen,
             "what a decision takes for the present power: the mean of that last part of a period", above(0));
  d.required("fast_share", &LimiterProfile::fast_share, "held from one decision to the next, over the limit",
             between(0.5, 3));
  d.required("window", &LimiterProfile::window, "over which the mean is held at held_share of the limit", above(0));
  d.required("least_share", &LimiterProfile::least_share, "never held lower than that, over the limit", between(0, 1));
  d.required("clock_exponent", &LimiterProfile::clock_exponent, "the clock goes as dynamic power to this power",
             between(0, 1));
  d.optional("clock", &LimiterProfile::clock, "highest clock", above(0));
  d.optional("products_clock", &LimiterProfile::products_clock,
             "share of the highest clock from which on matrix products run no faster and draw no more", between(0, 1));
  d.optional("source", &LimiterProfile::source, "where the numbers come from");
}

void GpuPower::describe(Description<GpuPower>& d) {
  d.object("gpu_power", "Watts of one board by activity, uncapped.");
  d.required("idle", &GpuPower::idle, "no job loaded");
  d.required("context", &GpuPower::context, "a job is loaded and sleeps");
  d.required("spin", &GpuPower::spin, "waiting inside a collective or for a launch");
  d.required("launch_bound", &GpuPower::launch_bound, "tiny kernels back to back");
  d.required("gemm_bf16", &GpuPower::gemm_bf16, "matrix products in BF16");
  d.required("gemm_fp8", &GpuPower::gemm_fp8, "matrix products in FP8");
  d.required("attention_forward", &GpuPower::attention_forward, "flash attention, forward");
  d.required("attention_backward", &GpuPower::attention_backward, "flash attention, backward");
  d.required("memory_bound", &GpuPower::memory_bound, "norms, activations, casts, optimizer");
  d.required("copy", &GpuPower::copy, "plain copies");
  d.required("collective", &GpuPower::collective, "moving data over links");
  d.required("convolution", &GpuPower::convolution, "dense convolutions");
  d.optional("throttle_exponent", &GpuPower::throttle_exponent,
             "time above the board limit grows with (dynamic power wanted / allowed) to this power", between(0, 2));
  d.optional("fitted_limit", &GpuPower::fitted_limit,
             "board limit that the exponent was fitted at; results under a lower cap are labelled an estimate");
  d.optional("held_share", &GpuPower::held_share,
             "mean power that the board's limiter settles at, as a share of the limit", between(0.5, 1));
  d.optional(
      "memory_reserve", &GpuPower::memory_reserve,
      "memory-bound kernels keep their speed while the clock leaves clock-bound ones this share of their dynamic "
      "power",
      between(0.01, 1));
  d.optional("gemm_other", &GpuPower::gemm_other,
             "matrix products in other precisions, by name; absent: as those in FP8 that are scaled, else in BF16");
  d.optional("zero_data", &GpuPower::zero_data,
             "dynamic power of matrix products of zeros over that of random data (data toggling)", between(0, 1));
  d.optional("limiter", &GpuPower::limiter, "the limiter in time; absent: not known, only the mean is held");
  d.optional("source", &GpuPower::source, "where the numbers come from");
}

void Accelerator::describe(Description<Accelerator>& d) {
  d.object("accelerator", "An accelerator: capacity, peaks, measured kernels, watts by activity.");
  d.required("name", &Accelerator::name, "name");
  d.required("memory", &Accelerator::memory, "memory capacity as the driver reports it", above(0));
  d.required("board_limit", &Accelerator::board_limit, "power limit of the board", above(0));
  d.required("peak_bf16", &Accelerator::peak_bf16, "dense BF16 peak", above(0));
  d.optional("peak_fp8", &Accelerator::peak_fp8, "dense FP8 peak; absent: no FP8");
  d.optional("peak_fp32", &Accelerator::peak_fp32, "FP32 peak (TF32 where matrices use it)");
  d.optional("peaks", &Accelerator::peaks, "dense peaks of other precisions: mxfp8, nvfp4 and its own");
  d.optional("precisions", &Accelerator::precisions,
             "precisions that are not among fp32, bf16, fp8, mxfp8 and nvfp4, by the name that a training asks for");
  d.optional(
      "efficiency", &Accelerator::efficiency,
      "share that kernels reach of what their table says: of matrix products by precision, of attention (with heads "
      "of 64 channels attention_64 times that, with values smaller than queries attention_uneven), of the "
      "release's optimizer (default: 1); odd, even: share of the peak that BF16 products reach with a side "
      "that divides by 1 or by 2 and not by 8 (default: as others)");
  d.optional("host_bandwidth", &Accelerator::host_bandwidth,
             "payload between the accelerator and adapters or others beside it (PCIe), one direction; 0: no limit");
  d.required("memory_bandwidth", &Accelerator::memory_bandwidth, "memory bandwidth of the datasheet", above(0));
  d.optional("copy_bandwidth", &Accelerator::copy_bandwidth,
             "measured bandwidth of a large copy, read plus written; with transfer_from: by default in proportion");
  d.optional("norm_bandwidth", &Accelerator::norm_bandwidth,
             "measured bandwidth of a fused norm; with transfer_from: by default in proportion");
  d.optional(
      "multiprocessors", &Accelerator::multiprocessors,
      "streaming multiprocessors: kernels that are bound by their instructions beside the memory follow these and "
      "the clock; absent: they follow the memory alone",
      at_least(1));
  d.optional("clock", &Accelerator::clock, "highest clock of the multiprocessors", above(0));
  d.optional("graph_floor", &Accelerator::graph_floor, "shortest kernel inside a CUDA graph");
  d.optional("launch_floor", &Accelerator::launch_floor, "of earlier versions: no answer asks for it");
  d.optional("gemm", &Accelerator::gemm, "measured matrix products");
  d.optional("attention", &Accelerator::attention, "measured attention kernels");
  d.optional("grouped", &Accelerator::grouped, "grouped products of experts");
  d.optional("power", &Accelerator::power,
             "watts by activity; with transfer_from: by default those of the other board by the ratio of the limits");
  d.optional("collectives", &Accelerator::collectives,
             "tables of the collective library of its maker (models/collectives); absent: NCCL's");
  d.optional("transfer_from", &Accelerator::transfer_from,
             "profile of a measured board: kernels, bandwidths, floors and watts that are not given here are "
             "transferred from it by the roofline");
  d.optional("transferred_from", &Accelerator::transferred_from,
             "empty when measured; else the profile whose efficiencies were transferred");
  d.optional("source", &Accelerator::source, "where the numbers come from");
}

void check_accelerator(const Accelerator& a, const ReadContext& at) {
  using Names = std::vector<std::string>;
  // `least` 0: anything above.
  const auto check = [](const auto& map, const Names& known, double least, const ReadContext& here) {
    for (const auto& [name, value] : map) {
      double number = 0;
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
        number = value;
      else
        number = value.value();
      if (std::find(known.begin(), known.end(), name) == known.end())
        here.at(name).fault(fmt::format("nothing is called {}", printable(name)), one_of(known));
      else if (!(number > 0 && number >= least))
        here.at(name).fault(fmt::format("{:g} is too small", number),
                            least > 0 ? fmt::format("at least {:g}", least) : "above 0");
    }
  };
  const Names precisions = a.precision_names();
  Names kernels{"attention", "attention_64", "attention_uneven", "delta_rule", "optimizer", "odd", "even"}, others;
  kernels.insert(kernels.end(), precisions.begin(), precisions.end());
  std::copy_if(precisions.begin(), precisions.end(), std::back_inserter(others), [](const std::string& name) {
    return name != Precision::bf16.name() && name != Precision::fp8.name();  // which have keys of their own
  });
  check(a.efficiency, kernels, kLeastShare, at.at("efficiency"));
  check(a.peaks, others, 0, at.at("peaks"));
  check(a.power.gemm_other, others, 0, at.at("power").at("gemm_other"));
  for (size_t i = 0; i < a.gemm.size(); ++i) check(a.gemm[i].times, others, 0, at.at("gemm").at(i).at("times"));
  for (const auto& [name, format] : a.precisions) {
    const ReadContext here = at.at("precisions").at(name);
    if (field_precision(name) != nullptr)
      here.fault(fmt::format("{} is known to all accelerators", name), "a name of its own");
    if (name.empty() || name.size() >= Precision{}.letters.size())
      here.fault(fmt::format("\"{}\" is no name of a precision", printable(name)), "1 to 15 letters");
    if (field_precision(format.like.name()) == nullptr)
      here.at("like").fault(fmt::format("there is no precision \"{}\"", printable(format.like.name())),
                            one_of(field_precisions()));
  }
}

std::vector<std::string> Accelerator::precision_names() const {
  std::vector<std::string> names = field_precisions();
  for (const auto& [name, format] : precisions) names.push_back(name);
  return names;
}

std::optional<Precision> Accelerator::precision(const std::string& name) const {
  if (const Precision* known = field_precision(name)) return *known;
  const auto own = precisions.find(name);
  if (own == precisions.end()) return std::nullopt;
  const PrecisionFormat& f = own->second;
  return Precision{precision_letters(name),
                   f.operand_bytes,
                   field_precision(f.like.name()),
                   f.peak_share,
                   f.scaled,
                   f.seeks_largest,
                   f.scaled ? Activity::gemm_fp8 : Activity::gemm_bf16};
}

void GemmPoint::describe(Description<GemmPoint>& d) {
  d.object("gemm_point", "Time of one matrix product of m x k by k x n, in a short burst.");
  d.required("m", &GemmPoint::m, "rows (tokens)", at_least(1));
  d.required("n", &GemmPoint::n, "columns (outputs)", at_least(1));
  d.required("k", &GemmPoint::k, "inner dimension", at_least(1));
  d.optional("bf16", &GemmPoint::bf16, "time in BF16", above(0));
  d.optional("fp8", &GemmPoint::fp8, "time in FP8 with BF16 output", above(0));
  d.optional("times", &GemmPoint::times, "times in other precisions");
}

FlopRate Accelerator::peak(const Precision& p) const {
  if (p == Precision::bf16) return peak_bf16;
  if (p == Precision::fp8) return peak_fp8;
  if (p == Precision::fp32 && peak_fp32.value() > 0) return peak_fp32;
  const auto found = peaks.find(p.name());
  if (found != peaks.end()) return found->second;
  return FlopRate::from_value(p.like == nullptr ? 0 : peak(*p.like).value() * p.peak_share);
}

void GroupedProducts::describe(Description<GroupedProducts>& d) {
  d.object("grouped_products", "How fast the products of a layer's experts are, made in one call.");
  d.optional("of_dense", &GroupedProducts::of_dense, "rate over that of a large dense product", between(0.01, 1));
  d.optional("of_copy", &GroupedProducts::of_copy, "bandwidth of operands over that of a large copy", between(0.01, 1));
  d.optional("launch", &GroupedProducts::launch, "time of the call beside both");
  d.optional("sharpness", &GroupedProducts::sharpness,
             "exponent by which the times of products and of operands join: the higher, the nearer to the longer one",
             between(1, 100));
  d.optional("weight_sharpness", &GroupedProducts::weight_sharpness, "the same of weights' gradients", between(1, 100));
}

void AttentionPoint::describe(Description<AttentionPoint>& d) {
  d.object("attention_point", "Time of one causal flash attention, batch 1.");
  d.required("heads", &AttentionPoint::heads, "query heads", at_least(1));
  d.required("sequence", &AttentionPoint::sequence, "tokens", at_least(1));
  d.optional("head_dim", &AttentionPoint::head_dim, "size of a head", at_least(1));
  d.required("forward", &AttentionPoint::forward, "forward time", above(0));
  d.required("backward", &AttentionPoint::backward, "backward time", above(0));
}

}  // namespace tw
