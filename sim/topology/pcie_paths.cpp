// PCIe trees inside nodes: what is wrong with a description, the nearest adapters, and the links between two devices.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.hpp"
#include "topology/builder.hpp"

namespace tw {
namespace {

constexpr const char* kSwitches = "/node/pcie/switches";

// Device -> the switch that it hangs below; a fault where one hangs nowhere, or twice.
std::vector<int> places_of(FabricBuilder& b, const char* kind, int count, std::vector<int> PcieSwitch::*devices) {
  const std::vector<PcieSwitch>& all = b.fabric.pcie.switches;
  std::vector<int> place(static_cast<size_t>(count), -1);
  for (size_t s = 0; s < all.size(); ++s)
    for (const int device : all[s].*devices) {
      const std::string at = fmt::format("{}/{}/{}s", kSwitches, s, kind);
      if (device < 0 || device >= count)
        b.fault(at, fmt::format("there is no {} {}", kind, device), fmt::format("0 to {}", count - 1));
      else if (std::exchange(place[static_cast<size_t>(device)], static_cast<int>(s)) >= 0)
        b.fault(at, fmt::format("{} {} hangs below two switches", kind, device), "each device once");
    }
  const auto missing = std::find(place.begin(), place.end(), -1);
  if (missing != place.end())
    b.fault(kSwitches, fmt::format("{} {} hangs below none of them", kind, missing - place.begin()),
            "every accelerator and every adapter has a place");
  return place;
}

void set_parents(FabricBuilder& b) {
  const std::vector<PcieSwitch>& all = b.fabric.pcie.switches;
  std::vector<std::string> names;
  for (const PcieSwitch& s : all) names.push_back(s.name);
  for (size_t s = 0; s < all.size(); ++s) {
    const auto found = std::find(names.begin(), names.end(), all[s].above);
    int above = -1;
    if (!all[s].above.empty() && found == names.end())
      b.fault(fmt::format("{}/{}/above", kSwitches, s), fmt::format("there is no switch \"{}\"", all[s].above),
              suggest(all[s].above, names));
    else if (!all[s].above.empty())
      above = static_cast<int>(found - names.begin());
    b.fabric.pcie_above.push_back(above);
    if (above >= 0 && all[static_cast<size_t>(above)].socket != all[s].socket)
      b.fault(
          fmt::format("{}/{}/socket", kSwitches, s),
          fmt::format("socket {} below a switch of socket {}", all[s].socket, all[static_cast<size_t>(above)].socket),
          "one socket from the root down");
  }
  for (size_t s = 0; s < all.size(); ++s) {
    int at = static_cast<int>(s);
    for (size_t steps = 0; at >= 0 && steps <= all.size(); ++steps) at = b.fabric.pcie_above[static_cast<size_t>(at)];
    if (at >= 0) return b.fault(fmt::format("{}/{}/above", kSwitches, s), "switches hang below each other", "a tree");
  }
}

// Each accelerator to the adapters with the fewest links on the way; those that have the same share them in turn.
void set_nearest(Fabric& f) {
  std::map<std::vector<int>, std::vector<int>> sharers;
  for (int g = 0; g < f.gpus; ++g) {
    std::vector<int> nearest;
    size_t least = 0;
    for (int k = 0; k < f.nics; ++k) {
      const int from = f.gpu_place[static_cast<size_t>(g)], to = f.nic_place[static_cast<size_t>(k)];
      const bool far =
          f.pcie.switches[static_cast<size_t>(from)].socket != f.pcie.switches[static_cast<size_t>(to)].socket;
      const size_t links = f.pcie_path(0, from, to).size() + (far ? 1000 : 0);
      if (nearest.empty() || links < least) nearest.clear(), least = links;
      if (links == least) nearest.push_back(k);
    }
    sharers[nearest].push_back(g);
  }
  for (const auto& [nics, gpus] : sharers)
    for (size_t i = 0; i < gpus.size(); ++i) {
      std::vector<int>& own = f.nics_beside[static_cast<size_t>(gpus[i])];
      const size_t each = std::max<size_t>(1, nics.size() / gpus.size());
      const size_t first = nics.size() >= gpus.size() ? i * each : i * nics.size() / gpus.size();
      own.assign(nics.begin() + static_cast<long>(first), nics.begin() + static_cast<long>(first + each));
    }
}

}  // namespace

void add_pcie(FabricBuilder& b) {
  Fabric& f = b.fabric;
  // By number: adapters in equal parts, or shared in equal parts.
  f.nics_beside.resize(static_cast<size_t>(f.gpus));
  for (int g = 0; g < f.gpus && f.nics > 0; ++g) {
    const int each = std::max(1, f.nics / f.gpus), first = f.nics >= f.gpus ? g * each : g * f.nics / f.gpus;
    for (int k = first; k < first + each; ++k) f.nics_beside[static_cast<size_t>(g)].push_back(k);
  }
  if (f.pcie.switches.empty()) return;
  f.gpu_place = places_of(b, "gpu", f.gpus, &PcieSwitch::gpus);
  f.nic_place = places_of(b, "nic", b.cluster.node.nics, &PcieSwitch::nics);
  set_parents(b);
  if (f.pcie.sockets() > 1 && !(f.pcie.inter_socket.value() > 0))
    b.fault("/node/pcie/inter_socket", fmt::format("{} sockets without a link between them", f.pcie.sockets()),
            "such as \"20 GB/s\"");
  if (b.faults.empty() && f.nics > 0) set_nearest(f);
}

std::vector<int> Fabric::pcie_path(int node, int from, int to) const {
  std::vector<int> up, down;
  for (int s = from; s >= 0; s = pcie_above[static_cast<size_t>(s)]) up.push_back(s);
  for (int s = to; s >= 0; s = pcie_above[static_cast<size_t>(s)]) down.push_back(s);
  bool meet = false;
  while (!up.empty() && !down.empty() && up.back() == down.back()) {
    up.pop_back(), down.pop_back();
    meet = true;
  }
  const int first = pcie_links() + node * pcie_links_of_node(), switches = static_cast<int>(pcie.switches.size());
  std::vector<int> links;
  for (const int s : up) links.push_back(first + 2 * s);
  const int a = pcie.switches[static_cast<size_t>(from)].socket, z = pcie.switches[static_cast<size_t>(to)].socket;
  if (!meet && a != z) {
    links.push_back(first + 2 * (switches + a));
    links.push_back(first + 2 * (switches + z) + 1);
  }
  for (auto s = down.rbegin(); s != down.rend(); ++s) links.push_back(first + 2 * *s + 1);
  return links;
}

std::string Fabric::pcie_link_name(int link) const {
  const int node = (link - pcie_links()) / pcie_links_of_node(), at = (link - pcie_links()) % pcie_links_of_node();
  const auto s = static_cast<size_t>(at / 2);
  const bool in = at % 2 == 1;
  if (s < pcie.switches.size()) return fmt::format("node-{} {} {}", node, pcie.switches[s].name, in ? "down" : "up");
  return fmt::format("node-{} socket {} {}", node, s - pcie.switches.size(), in ? "in" : "out");
}

}  // namespace tw
