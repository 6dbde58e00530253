#include "study/stage_splits.hpp"

#include <algorithm>

#include "workload/plan.hpp"

namespace tw {

bool stages_too_uneven(int layers, int pp, int further) {
  if (even_chunks(layers, pp, further)) return false;
  if (pp > layers) return true;
  auto count = layers_of_chunks(layers, pp, 1, further);
  count.back() += further;
  return 4L * *std::max_element(count.begin(), count.end()) * pp > 5L * (layers + further);
}

std::vector<int> virtual_stages(int layers, int pp, bool every, int further) {
  if (pp == 1 || pp > layers) return {1};
  std::vector<int> all, even;
  for (int vp = 1; vp <= std::min(layers / pp, 4 * (pp - 1)); ++vp) {
    all.push_back(vp);
    if (even_chunks(layers, pp * vp, further)) even.push_back(vp);
  }
  return every || even.empty() ? all : even;
}

}  // namespace tw
