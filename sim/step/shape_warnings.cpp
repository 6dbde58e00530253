#include "step/shape_warnings.hpp"

#include <fmt/format.h>

#include <set>

#include "hardware/calibration.hpp"
#include "workload/operations.hpp"
#include "workload/pattern.hpp"

namespace tw {

std::vector<std::string> shape_warnings(const StepInputs& in) {
  std::vector<std::string> warnings;
  if (in.network == nullptr) return warnings;
  const Accelerator& a = in.cluster->node.accelerator;
  const GemmRange range = gemm_range(a);
  if (!range.measured) {
    warnings.push_back(
        fmt::format("{}: no measured matrix products: 70 % of the peak is assumed for all of them", a.name));
    return warnings;
  }
  std::set<std::string_view> named;
  const auto look = [&](const LayerOperations& operations) {
    for (const auto* list : {&operations.forward, &operations.backward})
      for (const Operation& o : *list)
        if (o.kind == OperationKind::gemm && o.groups <= 1 && far_outside(range, o.m, o.n, o.k) &&
            named.insert(o.name).second)
          warnings.push_back(
              fmt::format("{}: matrix product \"{}\", {:.0f} x {:.0f} x {:.0f} (m x n x k), lies more than 4 times "
                          "outside the measured shapes ({}): its efficiency is that of the nearest ones",
                          a.name, o.name, o.m, o.n, o.k, range.text()));
  };
  for (const auto& entry : count_kinds(layer_kinds(*in.network), 0, in.network->layers))
    look(layer_operations(*in.network, entry.first, *in.training, *in.plan, *in.software));
  look(head_operations(*in.network, *in.training, *in.plan, *in.software));
  return warnings;
}

}  // namespace tw
