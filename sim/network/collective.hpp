// Collectives: from operation, ranks and topology to the links they load, the algorithm that is used, and the time
// alone. Loads are derived from the messages of each algorithm, link by link.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "network/collective_types.hpp"
#include "network/domain_speeds.hpp"
#include "network/engine.hpp"
#include "topology/routing.hpp"

namespace tw::network {

struct Rank {
  int node = 0;
  int gpu = 0;  // within the node
  bool operator==(const Rank&) const = default;
};

// Software latency of one protocol: the time before the first byte, and of one message inside a domain and between
// nodes (beside the fabric's own latency). `efficiency`: payload over what is sent.
struct ProtocolCost {
  double base_ring_s = 0, base_tree_s = 0;
  double nvlink_ring_s = 0, nvlink_tree_s = 0;
  double network_ring_s = 0, network_tree_s = 0;
  double efficiency = 1, tree_efficiency = 1;
};

// Numbers of the tuning table of NCCL 2.18 to 2.27 (src/graph/tuning.cc): baseLat, hwLat for NVLink and NET; LL sends 4
// bytes of flag with 4 of data, LL128 8 with 120; trees reach 92 % of the ring's bus bandwidth with Simple, 1 / 3.8
// with LL. The table's network latencies include a route of two cables, which is taken off here because the fabric adds
// its own: 1.2 us.
struct CollectiveOptions {
  Algorithm algorithm = Algorithm::automatic;
  Protocol protocol = Protocol::automatic;
  bool nvls = false;           // NVLink multicast may be used
  bool sharp = false;          // reduction in the switches may be used
  double domain_floor_s = -1;  // see DomainSpeeds::time_s
  uint64_t seed = 1;           // of ECMP hashing
  // Bus bandwidth of about 480 GB/s on 8 H100 (public nccl-tests runs of DGX H100) is 274 GB/s of payload, times 1 +
  // 1/8 on each link: 69 % of 450 GB/s.
  double nvls_efficiency = 0.69;
  double nvls_phase_s = 25e-6;   // NCCL's hwLat of NVLS on NVLink
  double sharp_phase_s = 31e-6;  // and of CollNet over the network
  std::array<ProtocolCost, 3> protocols{{
      {6.6e-6, 6.8e-6, 0.6e-6, 0.6e-6, 1.5e-6, 3.8e-6, 0.5, 1 / 3.8},  // LL
      {14e-6, 14e-6, 1.9e-6, 1.25e-6, 2.8e-6, 7.3e-6, 120.0 / 128, 0.92 * 120 / 128},
      {8.4e-6, 8.4e-6, 3.4e-6, 4.0e-6, 12.8e-6, 12.8e-6, 1, 0.92},
  }};
};

struct CollectiveCost {
  Operation operation = Operation::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  int ranks = 0;               // of one group
  double bytes = 0;            // full buffer of a rank
  bool inside_domain = false;  // closed form: the load has no links and its latency is the whole time
  LoadClass load;              // for these bytes: what is sent after `latency_s` takes bytes * max(weight / capacity)
  double time_s = 0;           // alone
  double bound_s = 0;          // no algorithm of this kind can be faster on these links
  std::string bottleneck;      // "NIC", "leaf-spine", "NVLink", ...
  double bus_bandwidth_Bps() const { return time_s > 0 ? bus_factor(operation, ranks) * bytes / time_s : 0; }
};

// Costs collectives on one fabric. Keeps routes and scratch arrays between calls: make one and use it often. Link ids
// are the fabric's.
class Collectives {
 public:
  explicit Collectives(const Fabric& fabric, CollectiveOptions options = {});
  ~Collectives();

  // `bytes`: the full buffer of a rank (gathered size for all-gather, input for reduce-scatter). Send-recv with two
  // ranks goes one way, with more each rank sends to the next. Broadcast goes out from the first rank. Throws
  // InputError when a rank is not on the fabric or a forced algorithm does not exist for the operation.
  CollectiveCost cost(Operation operation, const std::vector<Rank>& ranks, double bytes);

  // Groups of one size that do the same at the same time, as one load: every group has its own `bytes`.
  CollectiveCost cost(Operation operation, const std::vector<std::vector<Rank>>& groups, double bytes);

  // The same for several sizes, for little more than the cost of one.
  std::vector<CollectiveCost> costs(Operation operation, const std::vector<std::vector<Rank>>& groups,
                                    const std::vector<double>& bytes);

  // Do all ranks share one NVLink domain?
  bool one_domain(const std::vector<Rank>& ranks) const;
  double domain_time_s(Operation operation, int ranks, double bytes) const;
  const Fabric& fabric() const { return fabric_; }
  Router& router() { return router_; }
  const CollectiveOptions& options() const { return options_; }

 private:
  struct Scratch;
  struct Built;
  Built build(Operation operation, const std::vector<std::vector<Rank>>& groups, Algorithm algorithm);
  CollectiveCost finished(Operation operation, int ranks, double bytes, const Built& built, Algorithm algorithm);
  std::vector<Algorithm> candidates(Operation operation, const std::vector<std::vector<Rank>>& groups) const;
  double bound_s(Operation operation, const std::vector<std::vector<Rank>>& groups, double bytes,
                 bool in_network) const;
  const Fabric& fabric_;
  CollectiveOptions options_;
  Router router_;
  DomainSpeeds speeds_;
  std::unique_ptr<Scratch> scratch_;
};

// Sizes of a table in the manner of nccl-tests: from, 2 from, 4 from, ... up to `to` bytes.
std::vector<double> doubling_sizes(double from = 1024, double to = 16.0 * 1073741824);

// Bytes that a load moves over each cable of the fabric, both directions together. Link ids are the fabric's.
std::vector<double> cable_bytes(const Fabric& fabric, const LoadClass& load, double bytes);

// All accelerators of the given nodes, node by node.
std::vector<Rank> ranks_of(const Fabric& fabric, const std::vector<int>& nodes);

// The links that the classes use, renumbered from 0 in the classes; the rest is left out. `ids`, when given, gets the
// fabric's id of each.
std::vector<Link> engine_links(const Fabric& fabric, std::vector<LoadClass>& classes, std::vector<int>* ids = nullptr);

}  // namespace tw::network
