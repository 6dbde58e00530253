#include "network/contention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "network/link_loads.hpp"
#include "network/link_merge.hpp"

namespace tw::network {

int narrowest_link(const std::vector<Link>& links, const std::vector<LoadClass>& classes, size_t job) {
  std::map<int, double> weights;  // pressure of all jobs, each relative to what it asks for alone
  for (const LoadClass& c : classes) {
    const double alone = alone_s(links, {c.name, c.uses, 0}, 1);
    for (const LinkUse& use : c.uses)
      if (alone > 0) weights[use.link] += use.weight / links[static_cast<size_t>(use.link)].capacity_Bps / alone;
  }
  int found = -1;
  double most = 0;
  for (const LinkUse& use : classes[job].uses)
    if (weights[use.link] > most * (1 + 1e-9)) {
      most = weights[use.link];
      found = use.link;
    }
  return found;
}

LoadClass traffic_load(Router& router, const Fabric& fabric, const std::string& name, const std::vector<int>& sources,
                       const std::vector<int>& destinations, std::string* remark) {
  LinkLoads loads(fabric, router);
  for (const int a : sources)
    for (const int b : destinations) {
      if (a == b) continue;
      for (int k = 0; k < fabric.nics; ++k) {
        if (!fabric.nic_alive(a, k) || !fabric.nic_alive(b, k))
          throw SimulationError(fmt::format("\"{}\": node-{} or node-{} has a dead adapter", name, a, b));
        loads.add_lane(a, k, b, k, 1 / static_cast<double>(destinations.size()) / fabric.nics);
      }
    }
  LinkLoads::Taken taken = loads.take();
  if (remark != nullptr && !taken.remark.empty()) *remark = fmt::format("\"{}\": {}", name, taken.remark);
  return {name, std::move(taken.uses), taken.longest * fabric.hop_latency_s};
}

}  // namespace tw::network
