#include "step/visit_network.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "step/chunk_program.hpp"
#include "workload/memory.hpp"
#include "workload/pattern.hpp"

namespace tw {
namespace {

// A size at which algorithms are chosen for bandwidth: what a class is for.
constexpr double kLargeExchange = 256e6;

// What the layers of a plan exchange inside visits.
std::set<Exchange> exchanges_of(const StepInputs& in) {
  std::set<Exchange> found;
  const auto note = [&](const LayerOperations& layer) {
    for (const auto* list : {&layer.forward, &layer.backward})
      for (const Operation& o : *list)
        if (o.kind == OperationKind::exchange) found.insert(o.exchange);
  };
  for (const auto& [kind, count] :
       count_kinds(layers_as_trained(*in.network, *in.training, layers_of_chunks(*in.network, *in.plan)), 0,
                   in.network->layers))
    note(layer_operations(*in.network, kind, *in.training, *in.plan, *in.software));
  note(embedding_operations(*in.network, *in.training, *in.plan, *in.software));
  note(head_operations(*in.network, *in.training, *in.plan, *in.software));
  if (in.plan->sharding == Sharding::zero3 && reshards(*in.plan))
    for (const Exchange e : {Exchange::weight_gather, Exchange::gradient_reduce, Exchange::outer_reduce})
      found.insert(e);
  found.erase(Exchange::none);
  return found;
}

// Workers that start one exchange together, and the first of those that `replica` starts it with.
std::pair<int, int> together(const Plan& plan, Among among, int replica, int replicas) {
  if (replicas == 1 || among == Among::tp || among == Among::cp || among == Among::expert_tp) return {1, replica};
  if (among != Among::ep) return {replicas, 0};
  const int each = std::max(1, plan.ep * plan.expert_tp() / (plan.tp * plan.cp));
  return {each, replica / each * each};
}

struct Candidate {
  Exchange what = Exchange::none;
  std::vector<int> classes;  // [stage * replicas + replica], of `loads`
  int together = 1;
  double s_per_byte = 0;  // of all groups of the first stage at once
  bool uneven = false;    // another stage takes longer
};

double s_per_byte(const Fabric& fabric, const network::LoadClass& load) {
  double slowest = 0;
  for (const network::LinkUse& use : load.uses)
    slowest = std::max(slowest, use.weight / fabric.link_capacity_Bps(use.link));
  return slowest;
}

// Shares of each link's time that a class would take if nobody else were there.
using Pressure = std::unordered_map<int, double>;
void press(const Fabric& fabric, const network::LoadClass& load, Pressure& on) {
  const double slowest = s_per_byte(fabric, load);
  for (const network::LinkUse& use : load.uses) {
    double& most = on[use.link];
    most = std::max(most, use.weight / fabric.link_capacity_Bps(use.link) / slowest);
  }
}

}  // namespace

Among among(Exchange what, const Sharing& sharing) {
  switch (what) {
    case Exchange::cp_exchange:
    case Exchange::cp_all_gather:
    case Exchange::cp_reduce_scatter:
    case Exchange::cp_all_to_all:
      return Among::cp;
    case Exchange::ep_all_to_all:
      return Among::ep;
    case Exchange::expert_tp_gather:
    case Exchange::expert_tp_scatter:
    case Exchange::expert_tp_reduce:
      return Among::expert_tp;
    case Exchange::weight_gather:
      return Among::dp;
    case Exchange::gradient_reduce:
      return sharing.owners ? Among::replicas : Among::dp;
    case Exchange::amax_reduce:
      return Among::stage;
    case Exchange::outer_reduce:
      return Among::outer;
    case Exchange::expert_gather:
    case Exchange::expert_reduce:
      return Among::expert_dp;
    default:
      return Among::tp;
  }
}

Groups groups_of_worker(const RankGrid& grid, const Plan& plan, Among among, int stage, int replica, int replicas) {
  Groups all;
  const auto add = [&](Groups more) {
    for (auto& g : more) all.push_back(std::move(g));
  };
  const int first = replicas > 1 ? replica : 0, last = replicas > 1 ? replica : plan.dp - 1;
  const int holders = plan.ep * plan.expert_tp(), ranks = plan.tp * plan.cp;
  switch (among) {
    case Among::tp:
      for (int d = first; d <= last; ++d) add(grid.tp_groups(d, stage));
      break;
    case Among::cp:
      for (int d = first; d <= last; ++d) add(grid.cp_groups(d, stage));
      break;
    case Among::expert_tp:
      for (int d = first; d <= last; ++d) add(grid.expert_tp_groups(d, stage));
      break;
    case Among::ep:
      for (int block = first * ranks / holders; block <= ((last + 1) * ranks - 1) / holders; ++block)
        add(grid.ep_groups(block, stage));
      break;
    case Among::dp:
      return grid.gradient_groups(stage);
    case Among::outer:
      return grid.piece_groups(stage);
    case Among::replicas:
      return grid.replica_groups(stage);
    case Among::stage:
      return {grid.stage_group(stage)};
    default:
      return grid.expert_gradient_groups(stage);
  }
  return all;
}

network::Operation operation_of(Exchange what, const Sharing& sharing) {
  using O = network::Operation;
  switch (what) {
    case Exchange::tp_reduce_scatter:
    case Exchange::cp_reduce_scatter:
    case Exchange::expert_tp_scatter:
      return O::reduce_scatter;
    case Exchange::tp_all_reduce:
    case Exchange::expert_tp_reduce:
    case Exchange::amax_reduce:
    case Exchange::outer_reduce:
      return O::all_reduce;
    case Exchange::cp_exchange:
      return O::send_recv;
    case Exchange::cp_all_to_all:
    case Exchange::ep_all_to_all:
      return O::all_to_all;
    case Exchange::weight_gather:
      return sharing.gather();
    case Exchange::gradient_reduce:
    case Exchange::expert_reduce:
      return sharing.reduce();
    default:
      return O::all_gather;
  }
}

network::ClassParts parts_of(const network::CollectiveCost& cost, std::vector<std::vector<network::Rank>> groups,
                             double share) {
  if (cost.inside_domain || cost.load.uses.empty()) return {};
  return {{cost.operation, std::move(groups), cost.algorithm, cost.protocol, share, 1}};
}

namespace {

// [Among]: whether groups of the first stage reach beyond an NVLink domain, and meet others inside visits.
std::vector<bool> reaching_out(const RankGrid& grid, const Plan& plan, const network::Collectives& collectives) {
  const auto leaves_domain = [&](Among group) {
    const Groups groups = groups_of_worker(grid, plan, group, 0, 0, 1);
    return groups.front().size() > 1 &&
           !std::all_of(groups.begin(), groups.end(), [&](const auto& g) { return collectives.one_domain(g); });
  };
  std::vector<bool> outside;
  for (size_t g = 0; g < static_cast<size_t>(Among::count_); ++g)
    outside.push_back(leaves_domain(static_cast<Among>(g)));
  outside[static_cast<size_t>(Among::expert_dp)] = false;  // goes with that of dense parameters
  outside[static_cast<size_t>(Among::stage)] = false;      // a few numbers
  // Blocks of experts that cut through replicas have no workers of their own.
  const int holders = plan.ep * plan.expert_tp(), ranks = plan.tp * plan.cp;
  if (holders % ranks != 0 && ranks % holders != 0) outside[static_cast<size_t>(Among::ep)] = false;
  return outside;
}

}  // namespace

void add_visit_exchanges(StepNetwork& net, const StepInputs& in, const Fabric& fabric, const RankGrid& grid,
                         int replicas, const Sharing& sharing, network::Collectives& collectives, bool messages) {
  const Plan& plan = *in.plan;
  const std::vector<bool> outside = reaching_out(grid, plan, collectives);
  if (std::find(outside.begin(), outside.end(), true) == outside.end()) return;

  std::vector<network::LoadClass> loads;
  std::vector<network::ClassParts> parts;  // of each
  std::vector<Candidate> candidates;
  std::unordered_map<int, double> demand;  // of a link, over what it can carry
  const auto demands = [&](const Pressure& on) {
    for (const auto& [link, share] : on) demand[link] += share;
  };
  std::map<std::pair<Stream, int>, Pressure> queues;  // what one stream of one worker sends, it sends in turn
  for (const Exchange what : exchanges_of(in)) {
    const Among group = among(what, sharing);
    if (!outside[static_cast<size_t>(group)]) continue;
    Candidate c{what, {}, 1};
    for (int s = 0; s < plan.pp; ++s) {
      const Groups stage = groups_of_worker(grid, plan, group, s, 0, 1);
      const double all = s_per_byte(fabric, collectives.cost(operation_of(what, sharing), stage, kLargeExchange).load);
      if (s == 0) c.s_per_byte = all;
      c.uneven = c.uneven || all > c.s_per_byte * (1 + 1e-9);
      for (int r = 0; r < replicas; ++r) {
        const auto [count, first] = together(plan, group, r, replicas);
        c.together = count;
        if (first < r) {
          c.classes.push_back(c.classes[c.classes.size() - static_cast<size_t>(r - first)]);
          continue;
        }
        const Groups groups = groups_of_worker(grid, plan, group, s, r, replicas);
        auto cost = collectives.cost(operation_of(what, sharing), groups, kLargeExchange);
        if (messages) parts.push_back(parts_of(cost, groups));
        cost.load.name = "exchange " + std::to_string(static_cast<int>(what)) + " inside stage " + std::to_string(s);
        cost.load.latency_s = 0;  // part of the time that the visit has for it
        press(fabric, cost.load, queues[{stream_of(what), s * replicas + r}]);
        c.classes.push_back(static_cast<int>(loads.size()));
        loads.push_back(std::move(cost.load));
      }
    }
    candidates.push_back(std::move(c));
  }
  for (const network::LoadClass& load : net.classes) {
    Pressure on;
    press(fabric, load, on);
    demands(on);
  }
  for (const auto& [queue, on] : queues) demands(on);
  for (const Candidate& c : candidates) {
    const bool meets =
        c.uneven || std::any_of(c.classes.begin(), c.classes.end(), [&](int k) {
          const auto& uses = loads[static_cast<size_t>(k)].uses;
          return std::any_of(uses.begin(), uses.end(), [&](const auto& use) { return demand[use.link] > 1 + 1e-9; });
        });
    if (!meets) continue;
    StepNetwork::InVisits& known = net.in_visits[c.what];
    known.together = c.together;
    std::unordered_map<int, int> place;
    for (const int k : c.classes) {
      const auto [it, fresh] = place.try_emplace(k, static_cast<int>(net.classes.size()));
      if (fresh) {
        net.classes.push_back(loads[static_cast<size_t>(k)]);
        if (messages) net.parts.push_back(parts[static_cast<size_t>(k)]);
      }
      known.classes.push_back(it->second);
    }
    net.shared[c.what] = c.s_per_byte;
  }
}

}  // namespace tw
