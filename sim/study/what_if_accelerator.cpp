#include "study/what_if_accelerator.hpp"

#include "core/document.hpp"
#include "hardware/calibration.hpp"

namespace tw {

void follow_what_if(Accelerator& a, const Document& document, const std::string& pointer) {
  if (a.gemm.empty()) return;
  const std::string profile = document.origin(pointer + "/gemm").file;
  const auto overridden = [&](const char* key) { return document.origin(pointer + "/" + key).file != profile; };
  if (!overridden("peak_bf16") && !overridden("peak_fp8") && !overridden("memory_bandwidth")) return;
  // Tables written into a scenario belong to the figures beside them.
  Faults faults;
  const Document original = Document::load(profile, description<Accelerator>().info(), {}, faults);
  const auto measured = read<Accelerator>(original, faults);
  if (!faults.empty() || measured.gemm.empty()) return;
  if (a.peak_bf16 == measured.peak_bf16 && a.peak_fp8 == measured.peak_fp8 &&
      a.memory_bandwidth == measured.memory_bandwidth)
    return;
  Accelerator scaled = transferred(measured, a);
  if (overridden("copy_bandwidth")) scaled.copy_bandwidth = a.copy_bandwidth;
  if (overridden("norm_bandwidth")) scaled.norm_bandwidth = a.norm_bandwidth;
  if (overridden("graph_floor")) scaled.graph_floor = a.graph_floor;
  scaled.transferred_from = measured.name + " as it is (another peak or memory bandwidth is asked for)";
  a = scaled;
}

}  // namespace tw
