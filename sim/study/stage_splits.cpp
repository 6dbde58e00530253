#include "study/stage_splits.hpp"

#include <algorithm>

namespace tw {

bool stages_too_uneven(int layers, int pp) {
  if (pp > layers) return pp != layers + 2;
  if ((layers + 2) % pp == 0) return false;
  const int busiest = (layers + pp - 1) / pp;
  return 4L * busiest * pp > 5L * layers;
}

std::vector<int> virtual_stages(int layers, int pp, bool every) {
  if (pp == 1 || pp > layers) return {1};
  std::vector<int> all, even;
  for (int vp = 1; vp <= std::min(layers / pp, 4 * (pp - 1)); ++vp) {
    all.push_back(vp);
    if (layers % (pp * vp) == 0 || (layers + 2) % (pp * vp) == 0) even.push_back(vp);
  }
  return every || even.empty() ? all : even;
}

}  // namespace tw
