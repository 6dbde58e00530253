// Clusters for tests, made in code: small, and free of calibrated profiles.
#pragma once

#include "topology/fabric.hpp"

namespace tw::test {

inline Cluster reference_cluster() {
  Cluster c;
  c.name = "reference";
  c.node.gpus = 8;
  c.node.nics = 8;
  c.node.nic_bandwidth = bytes_per_second(25e9);
  c.node.nvlink.bandwidth = bytes_per_second(450e9);
  c.fabric.units = 12;
  c.fabric.nodes_per_unit = 6;
  c.fabric.leaves_per_unit = 2;
  c.fabric.spines = 16;
  c.fabric.uplinks_per_leaf = 16;
  c.fabric.uplink_bandwidth = bytes_per_second(50e9);
  c.fabric.switches.ports = 64;
  c.fabric.switches.nameplate = watts(1610);
  return c;
}

// `nodes` nodes of one accelerator with one adapter of 50 GB/s on one leaf.
inline Cluster flat_cluster(int nodes) {
  Cluster c = reference_cluster();
  c.name = "flat";
  c.node.gpus = c.node.nics = 1;
  c.node.nic_bandwidth = bytes_per_second(50e9);
  c.fabric.units = 1;
  c.fabric.nodes_per_unit = nodes;
  c.fabric.leaves_per_unit = 1;
  c.fabric.spines = 0;
  c.fabric.uplinks_per_leaf = 0;
  return c;
}

}  // namespace tw::test
