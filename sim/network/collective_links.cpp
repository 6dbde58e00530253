// What collectives are over and what their loads mean: sizes, ranks, cables, links of an engine.
#include "network/collective.hpp"

namespace tw::network {

std::vector<double> doubling_sizes(double from, double to) {
  std::vector<double> sizes;
  for (double b = from; b <= to * (1 + 1e-9); b *= 2) sizes.push_back(b);
  return sizes;
}

std::vector<double> cable_bytes(const Fabric& fabric, const LoadClass& load, double bytes) {
  std::vector<double> moved(fabric.cables.size(), 0);
  for (const LinkUse& use : load.uses)
    if (use.link < fabric.cable_links()) moved[static_cast<size_t>(use.link / 2)] += use.weight * bytes;
  return moved;
}

std::vector<Rank> ranks_of(const Fabric& fabric, const std::vector<int>& nodes) {
  std::vector<Rank> ranks;
  for (const int node : nodes)
    for (int gpu = 0; gpu < fabric.gpus; ++gpu) ranks.push_back({node, gpu});
  return ranks;
}

std::vector<Link> engine_links(const Fabric& fabric, std::vector<LoadClass>& classes, std::vector<int>* ids) {
  std::vector<int> place(static_cast<size_t>(fabric.link_count()), -1);
  std::vector<Link> links;
  for (LoadClass& c : classes)
    for (LinkUse& use : c.uses) {
      int& p = place[static_cast<size_t>(use.link)];
      if (p < 0) {
        p = static_cast<int>(links.size());
        links.push_back({ids == nullptr ? fabric.link_name(use.link) : "", fabric.link_capacity_Bps(use.link)});
        if (ids != nullptr) ids->push_back(use.link);
      }
      use.link = p;
    }
  return links;
}

}  // namespace tw::network
