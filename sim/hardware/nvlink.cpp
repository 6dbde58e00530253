#include "hardware/nvlink.hpp"

#include "core/codec.hpp"

namespace tw {

void DomainCollective::describe(Description<DomainCollective>& d) {
  d.object("domain_collective", "Measured speed of one collective inside an NVLink domain.");
  d.required("operation", &DomainCollective::operation,
             "all-reduce, all-gather, reduce-scatter, all-to-all, send-recv");
  d.required("ranks", &DomainCollective::ranks, "number of ranks", between(2, 100000));
  d.required("floor", &DomainCollective::floor, "time of the smallest call");
  d.required("bus_bandwidth", &DomainCollective::bus_bandwidth, "bus bandwidth of large calls", above(0));
  d.optional("half_size", &DomainCollective::half_size, "size at which half the bus bandwidth is reached");
  d.optional("source", &DomainCollective::source, "where the numbers come from");
}

void NvlinkDomain::describe(Description<NvlinkDomain>& d) {
  d.object("nvlink", "Links between the accelerators of a node.");
  d.required("bandwidth", &NvlinkDomain::bandwidth, "per accelerator, one direction", above(0));
  d.optional("nodes", &NvlinkDomain::nodes, "consecutive nodes that share one NVLink domain", between(1, 4096));
  d.optional("island", &NvlinkDomain::island,
             "neighbouring accelerators of a node that NVLink joins (2: pairs with a bridge, 1: none); the others are "
             "reached over PCIe; 0: all",
             between(0, 1024));
  d.optional("multicast_efficiency", &NvlinkDomain::multicast_efficiency,
             "reached share of the line rate where the switches reduce and multicast (NVLS); 0: as the library has it",
             between(0, 1));
  d.optional("host_calls", &NvlinkDomain::host_calls,
             "collectives are issued one by one by a host as slow as the one that measured the floors; else ahead");
  d.optional("issued_floor", &NvlinkDomain::issued_floor, "shortest call of those that are issued ahead");
  d.optional("reached_share", &NvlinkDomain::reached_share,
             "share of the line rate that large exchanges reach, where kernels beside them hold them up",
             between(0.01, 1));
  d.optional("collectives", &NvlinkDomain::collectives, "measured speeds; without them the bandwidth bound holds");
}

}  // namespace tw
