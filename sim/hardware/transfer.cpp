#include "hardware/transfer.hpp"

#include "core/codec.hpp"
#include "core/document.hpp"
#include "hardware/calibration.hpp"

namespace tw {
namespace {

// Boards of one family spend their watts alike: each activity keeps its share of the board's limit.
GpuPower scaled(const GpuPower& measured, double ratio) {
  GpuPower p = measured;
  for (Power* w : {&p.idle, &p.context, &p.spin, &p.launch_bound, &p.gemm_bf16, &p.gemm_fp8, &p.attention_forward,
                   &p.attention_backward, &p.memory_bound, &p.copy, &p.collective, &p.convolution, &p.fitted_limit})
    *w = watts(w->value() * ratio);
  for (auto& [name, w] : p.gemm_other) w = watts(w.value() * ratio);
  return p;
}

}  // namespace

void complete_transfer(Accelerator& a, Power rated_limit) {
  if (a.transfer_from.empty()) return;
  const auto measured = load<Accelerator>(a.transfer_from);
  // The same chip on a board of another limit draws what it draws until that limit binds: its peak tells.
  const bool same_chip = a.peak_bf16.value() == measured.peak_bf16.value();
  if (a.power.context.value() <= 0)
    a.power = same_chip ? measured.power : scaled(measured.power, rated_limit.value() / measured.board_limit.value());
  if (!a.gemm.empty()) return;
  if (measured.gemm.empty())
    throw InputError({{a.transfer_from, "/gemm", "no kernels to transfer", "the profile of a measured board"}});
  Accelerator full = transferred(measured, a);
  if (a.copy_bandwidth.value() > 0) full.copy_bandwidth = a.copy_bandwidth;
  if (a.norm_bandwidth.value() > 0) full.norm_bandwidth = a.norm_bandwidth;
  if (a.graph_floor.value() > 0) full.graph_floor = a.graph_floor;
  a = full;
}

}  // namespace tw
