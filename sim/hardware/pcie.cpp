#include "hardware/pcie.hpp"

#include <algorithm>

#include "core/codec.hpp"

namespace tw {

int PcieTree::sockets() const {
  int most = 0;
  for (const PcieSwitch& s : switches) most = std::max(most, s.socket + 1);
  return most;
}

void PcieSwitch::describe(Description<PcieSwitch>& d) {
  d.object("pcie_switch", "A PCIe switch or root port of a node, with the devices directly below it.");
  d.required("name", &PcieSwitch::name, "what others call it");
  d.optional("above", &PcieSwitch::above, "the switch that it hangs below; absent: the root of its socket");
  d.optional("socket", &PcieSwitch::socket, "processor (or NUMA node) whose root it hangs at", between(0, 63));
  d.required("uplink", &PcieSwitch::uplink, "bandwidth towards the root, one direction", tw::above(0));
  d.optional("gpus", &PcieSwitch::gpus, "accelerators directly below it, from 0");
  d.optional("nics", &PcieSwitch::nics, "adapters directly below it, from 0");
}

void PcieTree::describe(Description<PcieTree>& d) {
  d.object("pcie",
           "PCIe switches inside a node: who shares which uplink. An accelerator sends through the nearest adapters.");
  d.required("switches", &PcieTree::switches, "every accelerator and every adapter hangs below one of them");
  d.optional("inter_socket", &PcieTree::inter_socket,
             "bandwidth of each socket to the others, one direction; needed where there are several");
  d.optional("source", &PcieTree::source, "where the numbers come from");
}

}  // namespace tw
