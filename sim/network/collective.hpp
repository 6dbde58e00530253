// Collectives: from operation, ranks and topology to the links they load, the algorithm that is used, and the time
// alone. Loads are derived from the messages of each algorithm, link by link.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hardware/collective_library.hpp"
#include "network/algorithm.hpp"
#include "network/collective_types.hpp"
#include "network/domain_speeds.hpp"
#include "network/engine.hpp"
#include "topology/routing.hpp"

namespace tw::network {

struct CollectiveOptions {
  std::string algorithm = "auto";
  Protocol protocol = Protocol::automatic;
  bool nvls = false;   // NVLink multicast may be used
  bool sharp = false;  // reduction in the switches may be used
  double domain_floor_s =
      -1;                // of calls inside a domain; < 0: as measured where hosts issue them one by one, else none
  uint64_t seed = 1;     // of ECMP hashing
  bool explain = false;  // keep what was considered
  bool bound = true;     // find CollectiveCost::bound_s
  // How much later than the first each rank comes (of one group; empty: all at once). A load begins with the last of
  // them; single messages (level 3) go as soon as both of their ends are there.
  std::vector<double> late_s;
  // Loads name one of the links that always carry in the same proportion (TreeLevels): for many classes on one fabric,
  // all of which are made so. Not with SHARP, whose streams go up links of their own.
  bool narrowest_links = false;
  const CollectiveLibrary* library = &default_library();
  const std::vector<CollectiveAlgorithm>* known = &algorithms();
};

// One way to run it, as the choice saw it.
struct Considered {
  std::string algorithm;
  Protocol protocol = Protocol::simple;
  double time_s = 0;     // alone
  double assumed_s = 0;  // what the library takes it to need: the least is chosen
  std::string refusal;   // why it cannot run; then there are no times
  std::string because;   // with CollectiveOptions::explain: what the library takes off its latency and bandwidth
  bool listed = false;   // the library's table names it for this size
};

struct CollectiveCost {
  Operation operation = Operation::all_reduce;
  std::string algorithm = "ring";
  Protocol protocol = Protocol::simple;
  int ranks = 0;               // of one group
  double bytes = 0;            // full buffer of a rank
  bool inside_domain = false;  // closed form: the load has no links and its latency is the whole time
  LoadClass load;              // for these bytes: what is sent after `latency_s` takes bytes * max(weight / capacity)
  double time_s = 0;           // alone, from the first rank that comes
  double late_s = 0;           // part of it: until the last rank is there
  double bound_s = 0;          // no algorithm of this kind can be faster on these links
  std::string bottleneck;      // "NIC", "leaf-spine", "NVLink", ...
  std::string remark;          // where it is left at less than its model, or than what is switched on
  std::vector<Considered> considered;  // with CollectiveOptions::explain
  double bus_bandwidth_Bps() const { return time_s > 0 ? bus_factor(operation, ranks) * bytes / time_s : 0; }
};

class LinkLoads;
struct NvlinkCost;

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

  // The same for several sizes, for little more than the cost of one. Links of few ranks are remembered: plans ask for
  // the same groups with many sizes.
  std::vector<CollectiveCost> costs(Operation operation, const std::vector<std::vector<Rank>>& groups,
                                    const std::vector<double>& bytes);

  // Do all ranks share one NVLink domain?
  bool one_domain(const std::vector<Rank>& ranks) const;

  double domain_time_s(Operation operation, int ranks, double bytes) const;
  const Fabric& fabric() const { return fabric_; }
  Router& router() { return router_; }
  const CollectiveOptions& options() const { return options_; }
  // Of all costs that were given.
  const std::set<std::string>& remarks() const { return remarks_; }

  // The algorithm that the options name. Throws InputError when there is none, or when it refuses one of the groups.
  const CollectiveAlgorithm& named_algorithm(const std::vector<const Group*>& groups, Operation operation) const;
  // Row of the library's table. Throws InputError when the library does not have it.
  const AlgorithmTuning& tuning(const std::string& row) const;
  const ProtocolTuning& tuning(const std::string& row, Protocol protocol) const;
  NvlinkCost nvlink_cost(Operation operation, int ranks) const;

 private:
  struct Built;
  Built build(Operation operation, const std::vector<Group>& groups, const CollectiveAlgorithm& algorithm);
  void consider(Operation operation, double bytes, const Built& built, std::vector<Considered>& all) const;
  void assume(Operation operation, double bytes, const Built& built, const ProtocolTuning& protocol,
              Considered& way) const;
  CollectiveCost finished(double bytes, const Built& built, const Considered& chosen) const;
  const LibraryChoice* listed(Operation operation, double bytes, const std::vector<Built>& built,
                              const CollectiveCost& inside) const;
  CollectiveCost chosen(Operation operation, double bytes, const std::vector<Built>& built, CollectiveCost best) const;
  double latency_of(const ProtocolTuning& protocol, const Built& built) const;
  double relayed_s(const ProtocolTuning& protocol, const Built& built, double bytes) const;
  void add_refusals(const std::vector<Group>& groups, Operation operation, std::vector<Considered>& all) const;
  std::vector<const CollectiveAlgorithm*> candidates(Operation operation, const std::vector<Group>& groups,
                                                     bool measured) const;
  double bound_s(Operation operation, const std::vector<Group>& groups, double bytes, bool in_network) const;
  struct Ways;  // in which groups can do an operation, for any size
  class Memory;
  Ways ways(Operation operation, const std::vector<std::vector<Rank>>& groups);
  const Fabric& fabric_;
  CollectiveOptions options_;
  Router router_;
  DomainSpeeds speeds_;
  std::unique_ptr<LinkLoads> loads_;
  std::unique_ptr<Memory> known_;
  std::set<std::string> remarks_;
};

// Choices of a library that name an operation or an algorithm that there is not; where: "/choices/0/operation".
std::vector<Fault> library_faults(const CollectiveLibrary& library);

// Sizes of a table in the manner of nccl-tests: from, 2 from, 4 from, ... up to `to` bytes.
std::vector<double> doubling_sizes(double from = 1024, double to = 16.0 * 1073741824);

// Bytes that a load moves over each cable of the fabric, both directions together. Link ids are the fabric's.
std::vector<double> cable_bytes(const Fabric& fabric, const LoadClass& load, double bytes);

// All accelerators of the given nodes, node by node.
std::vector<Rank> ranks_of(const Fabric& fabric, const std::vector<int>& nodes);

// The links that the classes use, renumbered from 0 in the classes; the rest is left out. `ids`, when given, gets the
// fabric's id of each, which spares their names.
std::vector<Link> engine_links(const Fabric& fabric, std::vector<LoadClass>& classes, std::vector<int>* ids = nullptr);

}  // namespace tw::network
