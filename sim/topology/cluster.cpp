#include "topology/cluster.hpp"

#include <algorithm>

#include "core/codec.hpp"

namespace tw {

void NodeType::describe(Description<NodeType>& d) {
  d.object("node", "A compute node: accelerators, the links between them, NICs and power levels.");
  d.required("accelerator", &NodeType::accelerator, "accelerator profile");
  d.optional("gpus", &NodeType::gpus, "accelerators in a node", between(1, 1024));
  d.required("nvlink", &NodeType::nvlink, "links between the accelerators of a node");
  d.optional("nics", &NodeType::nics, "network adapters for the training fabric", between(0, 64));
  d.required("nic_bandwidth", &NodeType::nic_bandwidth, "bandwidth of one network adapter, one direction", above(0));
  d.optional("pcie", &NodeType::pcie, "PCIe switches that accelerators and adapters share; absent: none shares any");
  d.required("power", &NodeType::power, "power of the node beside its accelerators");
  d.optional("host_memory", &NodeType::host_memory, "memory of its processors, for what a plan offloads");
}

double NodeType::host_copy_Bps() const {
  const double link =
      host_memory.copy_bandwidth.value() > 0 ? host_memory.copy_bandwidth.value() : accelerator.host_bandwidth.value();
  return std::min(link, host_memory.bandwidth.value() / gpus);
}

void HostMemory::describe(Description<HostMemory>& d) {
  d.object("host_memory", "Memory of a node's processors.");
  d.optional("capacity", &HostMemory::capacity, "of the node; 0: not known, nothing can be offloaded");
  d.optional("bandwidth", &HostMemory::bandwidth, "of the memory of all its processors, by the datasheet");
  d.optional("copy_bandwidth", &HostMemory::copy_bandwidth,
             "payload of a copy between it and one accelerator, one direction (PCIe, NVLink-C2C); 0: the "
             "accelerator's host_bandwidth");
  // DeepSpeed's CPU-Adam: 10 billion parameters, 28 bytes each, in 2.57 s on two Xeon 8168 of 256 GB/s together (Ren et
  // al. 2021, ZeRO-Offload, tables 2 and 4).
  d.optional("update_efficiency", &HostMemory::update_efficiency,
             "share of the bandwidth at which the processors update optimizer states", between(0.01, 1));
  d.optional("source", &HostMemory::source, "where the numbers come from");
}

void SwitchType::describe(Description<SwitchType>& d) {
  d.object("switch", "A network switch.");
  d.optional("ports", &SwitchType::ports, "ports of one switch", between(1, 4096));
  d.required("nameplate", &SwitchType::nameplate, "nameplate power of one switch");
  d.optional("power", &SwitchType::power, "what it draws in use; absent: its nameplate");
  d.optional("source", &SwitchType::source, "where the numbers come from");
}

void HostNoise::describe(Description<HostNoise>& d) {
  d.object("host_noise", "Random slow-downs of the nodes of a cluster.");
  d.optional("host_sigma", &HostNoise::host_sigma,
             "standard deviation of the time of one second of host (launch) work, in seconds; over t seconds it "
             "grows with the square root of t",
             between(0, 10));
  d.optional("device_sigma", &HostNoise::device_sigma, "the same for one second of device work", between(0, 10));
  d.optional("stalls_per_hour", &HostNoise::stalls_per_hour, "rare stalls per node and hour", between(0, 1e6));
  d.optional("stall_mean", &HostNoise::stall_mean, "mean length of a stall (exponentially distributed)");
  d.optional("correlation", &HostNoise::correlation, "time within which a slow clock stays slow", above(0));
  d.optional("source", &HostNoise::source, "where the numbers come from");
}

void Hosts::describe(Description<Hosts>& d) {
  d.object("hosts", "What is particular to the machines of this cluster.");
  d.optional("launch_speed", &Hosts::launch_speed,
             "speed of issuing kernels, relative to the hosts of the software profile", above(0));
  d.optional("device_speed", &Hosts::device_speed,
             "accelerator speed under load, relative to the systems of the software profile (firmware, clock and "
             "cooling settings)",
             above(0));
  d.optional("spawn_speed", &Hosts::spawn_speed,
             "speed of starting processes (data loaders, evaluation workers) inside the clock, relative to the hosts "
             "of the software profile's start-up terms",
             above(0));
  d.optional("noise", &Hosts::noise, "random slow-downs");
  d.optional("source", &Hosts::source, "where the numbers come from");
}

void Storage::describe(Description<Storage>& d) {
  d.object("storage", "Storage as the whole cluster shares it.");
  d.required("read_bandwidth", &Storage::read_bandwidth, "peak read bandwidth of the cluster", above(0));
  d.required("write_bandwidth", &Storage::write_bandwidth, "peak write bandwidth of the cluster", above(0));
  d.optional("network", &Storage::network, "the network it is reached over");
  d.optional("capacity", &Storage::capacity, "what it holds; absent: anything");
  d.optional("node_bandwidth", &Storage::node_bandwidth,
             "of the storage adapters of one node, one direction; absent: no limit of their own");
  d.optional("source", &Storage::source, "where the numbers come from");
}

void ExplicitSwitch::describe(Description<ExplicitSwitch>& d) {
  d.object("explicit_switch", "A switch of an explicit graph.");
  d.required("name", &ExplicitSwitch::name, "name, unique in the cluster");
  d.optional("tier", &ExplicitSwitch::tier, "1: nodes are cabled to it, 2 and up: above", between(1, 8));
  d.optional("unit", &ExplicitSwitch::unit, "scalable unit or group it belongs to; -1: none", between(-1, 100000));
  d.optional("ports", &ExplicitSwitch::ports, "ports; 0: of the switch type", between(0, 4096));
}

void ExplicitCable::describe(Description<ExplicitCable>& d) {
  d.object("explicit_cable", "Cables of an explicit graph.");
  d.required("from", &ExplicitCable::from, "a node (\"node-0\": its next free NIC) or a switch");
  d.required("to", &ExplicitCable::to, "a switch");
  d.optional("count", &ExplicitCable::count, "parallel cables", between(1, 4096));
  d.required("bandwidth", &ExplicitCable::bandwidth, "of one cable, one direction", above(0));
}

void CableChange::describe(Description<CableChange>& d) {
  d.object("cable_change", "Cables that run at another speed than the rest.");
  d.required("cable", &CableChange::cable,
             "\"node-3 nic 2\", \"leaf-0-A - spine-1\" (all cables between the two), or a node or switch (all of its)");
  d.required("bandwidth", &CableChange::bandwidth, "of one cable, one direction", above(0));
}

void PowerDelivery::describe(Description<PowerDelivery>& d) {
  d.object("power_delivery", "From AC to the nodes: buses, power shelves, rectifiers.");
  d.optional("bus_voltage", &PowerDelivery::bus_voltage, "voltage of the DC bus", above(0));
  d.optional("nodes_per_bus", &PowerDelivery::nodes_per_bus, "nodes fed by one bus", between(1, 4096));
  d.optional("shelves_per_bus", &PowerDelivery::shelves_per_bus, "power shelves that feed one bus", between(1, 4096));
  d.optional("rectifiers_per_shelf", &PowerDelivery::rectifiers_per_shelf, "rectifiers in a shelf", between(1, 256));
  d.required("rectifier", &PowerDelivery::rectifier, "rectifier type");
  d.optional("redundancy", &PowerDelivery::redundancy,
             "what a bus must still carry its load without: n nothing, n+1 one rectifier, 2n one shelf");
  d.optional("battery", &PowerDelivery::battery,
             "battery shelf of a bus: rides through outages of the feed, gives what a bus asks beyond its rectifiers");
  d.optional("upstream", &PowerDelivery::upstream, "stages from the shelves to the grid, lowest first");
}

void Cluster::describe(Description<Cluster>& d) {
  d.object("cluster", "A cluster: nodes, wiring, power delivery, storage.");
  d.required("name", &Cluster::name, "name of the cluster");
  d.optional("description", &Cluster::description, "what it is");
  d.required("node", &Cluster::node, "the compute node");
  d.required("fabric", &Cluster::fabric, "the training network");
  d.required("power_delivery", &Cluster::power_delivery, "from AC to the nodes");
  d.required("storage", &Cluster::storage, "storage");
  d.optional("hosts", &Cluster::hosts, "what is particular to the machines of this cluster");
}

}  // namespace tw
