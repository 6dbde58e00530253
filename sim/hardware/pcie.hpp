// PCIe inside a node: switches that accelerators and adapters share, and the sockets they hang at.
#pragma once

#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"

namespace tw {

// A switch, or a root port, with the devices directly below it. Devices below one switch meet in it; others go up to
// where their ways join, at the latest in the root of their socket.
struct PcieSwitch {
  std::string name;
  std::string above;  // the switch that it hangs below; empty: the root of its socket
  int socket = 0;
  Bandwidth uplink;  // one direction
  std::vector<int> gpus, nics;
  static void describe(Description<PcieSwitch>& d);
};

struct PcieTree {
  std::vector<PcieSwitch> switches;  // empty: every device has a way of its own to every other
  Bandwidth inter_socket;            // of each socket to the others, one direction
  std::string source;
  static void describe(Description<PcieTree>& d);
  int sockets() const;  // one more than the highest
};

}  // namespace tw
