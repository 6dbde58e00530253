// How what is routed flow by flow follows the splits of a balance.
#include "network/adaptive_split.hpp"

namespace tw::network {

void SplitTable::spray(const Fabric& fabric, Router& router, int from, int to, double bytes,
                       std::vector<LinkShare>& carried) const {
  double rest = 1;
  if (const auto known = parts_.find(to); known != parts_.end())
    for (const Part& part : known->second) {
      if (part.next.count(from) == 0) continue;
      rest -= part.share;
      std::map<int, double> here{{from, bytes * part.share}};  // switches all as far from `to`
      while (!here.empty() && here.begin()->first != to) {
        std::map<int, double> next;
        for (const auto& [at, arrived] : here)
          for (const LinkShare& l : part.next.at(at)) {
            const Cable& c = fabric.cables[static_cast<size_t>(l.link / 2)];
            carried.push_back({l.link, arrived * l.share});
            next[l.link % 2 == 0 ? c.b : c.a] += arrived * l.share;
          }
        here = std::move(next);
      }
    }
  if (rest > 1e-12) router.spray(from, to, bytes * rest, carried);
}

}  // namespace tw::network
