// Exchanges inside visits as loads of the fabric engine, where they may meet others.
#pragma once

#include <vector>

#include "network/collective.hpp"
#include "step/rank_grid.hpp"
#include "step/step_network.hpp"

namespace tw {

// How the ranks that share an optimizer's states exchange gradients and weights.
struct Sharing {
  using O = network::Operation;
  bool sharded = false, owners = false;
  double owned_bytes = 0;  // of weights, that a rank broadcasts
  network::Operation reduce() const { return sharded && !owners ? O::reduce_scatter : O::all_reduce; }
  network::Operation gather() const { return owners ? O::broadcast : O::all_gather; }
};

// Who takes part in an exchange inside a layer, and the collective that it is.
enum class Among { tp, cp, ep, expert_tp, dp, outer, expert_dp, replicas, stage, count_ };
Among among(Exchange what, const Sharing& sharing);
network::Operation operation_of(Exchange what, const Sharing& sharing);

// The groups of a stage that exchange when worker `replica` does: with one worker for all, those of all replicas.
using Groups = std::vector<std::vector<network::Rank>>;
Groups groups_of_worker(const RankGrid& grid, const Plan& plan, Among among, int stage, int replica, int replicas);

// Adds classes of the exchanges inside visits that leave an NVLink domain and whose links cannot carry all that may be
// sent over them at a time. `net` holds all other classes, on link ids of the fabric. `messages`: with what level 3
// sends in their place.
void add_visit_exchanges(StepNetwork& net, const StepInputs& in, const Fabric& fabric, const RankGrid& grid,
                         int replicas, const Sharing& sharing, network::Collectives& collectives,
                         bool messages = false);

// The collective that a cost was made for; nothing inside an NVLink domain, whose times are known.
network::ClassParts parts_of(const network::CollectiveCost& cost, std::vector<std::vector<network::Rank>> groups,
                             double share = 1);

}  // namespace tw
