#include "network/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/collective_built.hpp"
#include "network/link_loads.hpp"

namespace tw::network {
namespace {

void check_ranks(const Fabric& fabric, const std::vector<std::vector<Rank>>& groups) {
  if (groups.empty() || groups.front().empty()) throw InputError({{"", "", "a collective has no ranks", ""}});
  for (const auto& group : groups) {
    if (group.size() != groups.front().size())
      throw InputError(
          {{"", "", fmt::format("groups of {} and {} ranks in one collective", groups.front().size(), group.size()),
            ""}});
    for (const Rank& r : group)
      if (r.node < 0 || r.node >= fabric.node_count || r.gpu < 0 || r.gpu >= fabric.gpus)
        throw InputError({{fabric.cluster_name, "", fmt::format("there is no rank on node {} GPU {}", r.node, r.gpu),
                           fmt::format("nodes 0 to {}, GPUs 0 to {}", fabric.node_count - 1, fabric.gpus - 1)}});
  }
}

// What the measured speeds of an NVLink domain were measured with.
const char* measured_as(Operation op) {
  return op == Operation::all_to_all || op == Operation::send_recv ? "direct" : "ring";
}

[[noreturn]] void refuse(Operation op, const std::string& algorithm, const std::string& why) {
  throw InputError({{"", "", fmt::format("{} cannot run as {}: {}", choice_name(op), algorithm, why), ""}});
}

}  // namespace

struct Collectives::Ways {
  std::vector<Built> built;
  std::vector<Group> sets;  // of more than one rank
  bool closed_form = false;
  double bound_per_byte = 0;
  std::string remark;  // why reduction in the switches, though switched on, is not used
};

// Of groups that have few ranks together, as long as they are few in all.
class Collectives::Memory {
 public:
  using Groups = std::vector<std::vector<Rank>>;

  // Null: not known.
  const Ways* find(Operation op, const Groups& groups) const {
    const auto of_op = known_.find(op);
    if (of_op == known_.end()) return nullptr;
    const auto at = of_op->second.find(groups);
    return at == of_op->second.end() ? nullptr : &at->second;
  }

  // Until the next call, or, if they are not `passing`, as long as there is room.
  const Ways& keep(Operation op, const Groups& groups, Ways&& ways, bool passing) {
    const size_t ranks = groups.size() * groups.front().size();
    if (passing || ranks > kMostRanks) return last_ = std::move(ways);
    if (ranks_ + ranks > kMostKnown) known_.clear(), ranks_ = 0;
    ranks_ += ranks;
    return known_[op].emplace(groups, std::move(ways)).first->second;
  }

 private:
  static constexpr size_t kMostRanks = 4096, kMostKnown = 65536;
  struct Less {
    bool operator()(const Groups& a, const Groups& b) const {
      if (a.size() != b.size()) return a.size() < b.size();
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(), [](const Rank& p, const Rank& q) {
          return std::tie(p.node, p.gpu) < std::tie(q.node, q.gpu);
        });
      });
    }
  };
  std::map<Operation, std::map<Groups, Ways, Less>> known_;
  size_t ranks_ = 0;
  Ways last_;
};

Collectives::Collectives(const Fabric& fabric, CollectiveOptions options)
    : fabric_(fabric),
      options_(options),
      router_(fabric, options.seed),
      speeds_(fabric.nvlink, *options.library),
      loads_(std::make_unique<LinkLoads>(fabric, router_, options.narrowest_links, options.seed)),
      known_(std::make_unique<Memory>()) {
  router_.queue_pairs = options.library->queue_pairs;
  if (options.library->choices.empty()) return;
  const std::vector<Fault> faults = library_faults(*options.library);
  if (!faults.empty()) throw InputError(faults);
}
Collectives::~Collectives() = default;

bool Collectives::one_domain(const std::vector<Rank>& ranks) const {
  return std::all_of(ranks.begin(), ranks.end(), [&](const Rank& r) {
    return r.node / fabric_.nodes_per_domain == ranks.front().node / fabric_.nodes_per_domain &&
           !fabric_.over_host(r.node, r.gpu, ranks.front().node, ranks.front().gpu);
  });
}

double Collectives::domain_time_s(Operation operation, int ranks, double bytes) const {
  const double floor_s = options_.domain_floor_s < 0 && !fabric_.nvlink.host_calls ? 0 : options_.domain_floor_s;
  return speeds_.time_s(operation, ranks, bytes, floor_s);
}

// Measured bus bandwidth inside a domain stands below the line rate: NVLink bytes are counted up by that.
NvlinkCost Collectives::nvlink_cost(Operation op, int ranks) const {
  const int together = std::min(ranks, fabric_.gpus * fabric_.nodes_per_domain);
  const double own = fabric_.nvlink.multicast_efficiency;
  return {1 / speeds_.efficiency(op, together), 1 / (own > 0 ? own : options_.library->nvls_efficiency)};
}

const CollectiveAlgorithm& Collectives::named_algorithm(const std::vector<const Group*>& groups, Operation op) const {
  for (const CollectiveAlgorithm& a : *options_.known) {
    if (options_.algorithm != a.name) continue;
    for (const Group* g : groups)
      if (const std::string why = a.refusal(*g, op); !why.empty()) refuse(op, std::string(a.name), why);
    return a;
  }
  throw InputError({{"", "", fmt::format("there is no algorithm \"{}\"", options_.algorithm),
                     suggest(options_.algorithm, algorithm_names(*options_.known))}});
}

Collectives::Built Collectives::build(Operation op, const std::vector<Group>& groups,
                                      const CollectiveAlgorithm& algorithm) {
  Built built;
  built.algorithm = &algorithm;
  bool single = false;
  try {
    for (const Group& group : groups) {
      const FlowPlan plan = algorithm.plan(group, op);
      built.tuning = plan.tuning;
      if (options_.algorithm == "auto" && options_.library->algorithms.count(built.tuning) == 0) {
        built.algorithm = nullptr;  // the library does not have it
        return built;
      }
      single = plan.single_messages;
      double nvlink = 0, network = 0, passed_nvlink = 0, passed_network = 0, relays = 0;
      for (const Stage& stage : plan.stages) {
        nvlink += stage.nvlink;
        network += stage.network;
        if (!stage.relays) continue;
        ++relays;
        built.channels = group.channels() * options_.library->channels_per_adapter;
        built.hops_nvlink = std::max(built.hops_nvlink, stage.nvlink);
        built.hops_network = std::max(built.hops_network, stage.network);
        if (stage.network > 0) passed_network += stage.network / group.domain_Bps();
        passed_nvlink += stage.nvlink * nvlink_cost(op, group.n()).flow / fabric_.nvlink_Bps;
      }
      built.relays = relays;
      built.passed_network = std::max(built.passed_network, passed_network);
      built.passed_nvlink = std::max(built.passed_nvlink, passed_nvlink);
      built.nvlink = std::max(built.nvlink, nvlink);
      built.network = std::max(built.network, network);
      loads_->add(group, plan, nvlink_cost(op, group.n()));
    }
    LinkLoads::Taken taken = loads_->take();
    built.uses = std::move(taken.uses);
    built.hops = single ? taken.longest : taken.hops;
    built.remark = std::move(taken.remark);
  } catch (...) {
    loads_ = std::make_unique<LinkLoads>(fabric_, router_, options_.narrowest_links, options_.seed);
    throw;
  }
  for (const LinkUse& use : built.uses) {
    const double t = use.weight / fabric_.link_capacity_Bps(use.link);
    if (t > built.slowest * (1 + 1e-9)) built.narrow = use.link;  // of equal ones the first
    built.slowest = std::max(built.slowest, t);
  }
  const AlgorithmTuning& rows = tuning(built.tuning);
  if (rows.parallel > 0) {
    built.nvlink = std::ceil(built.nvlink / rows.parallel);
    built.network = std::ceil(built.network / rows.parallel);
  }
  built.assumed = built.slowest;
  if (rows.assumed_load > 0 && groups.front().count() > 2)
    built.assumed = std::max(built.slowest, rows.assumed_load / groups.front().domain_Bps());
  built.domains = groups.front().count();
  built.adapters = groups.front().channels();
  built.domain_Bps = built.domains > 1 ? groups.front().domain_Bps() : 0;
  built.domain_ranks = static_cast<double>(groups.front().largest());
  built.bus_factor = built.tuning == "tree" ? 2 : bus_factor(op, groups.front().n());
  built.reduced = algorithm.uses_switches ? built.domain_ranks : 0;
  return built;
}

// `measured`: the speeds of the domain stand for all algorithms that send from rank to rank.
std::vector<const CollectiveAlgorithm*> Collectives::candidates(Operation op, const std::vector<Group>& groups,
                                                                bool measured) const {
  std::vector<const CollectiveAlgorithm*> list;
  if (options_.algorithm != "auto") {
    std::vector<const Group*> all;
    for (const Group& g : groups) all.push_back(&g);
    return {&named_algorithm(all, op)};
  }
  for (const CollectiveAlgorithm& a : *options_.known) {
    if (measured && !a.uses_switches) continue;
    const bool listed =
        std::any_of(options_.library->choices.begin(), options_.library->choices.end(),
                    [&](const LibraryChoice& c) { return c.algorithm == a.name && c.operation == choice_name(op); });
    if (std::all_of(groups.begin(), groups.end(),
                    [&](const Group& g) { return a.offered(g, op, options_) || (listed && a.refusal(g, op).empty()); }))
      list.push_back(&a);
  }
  return list;
}

double Collectives::bound_s(Operation op, const std::vector<Group>& groups, double bytes, bool in_network) const {
  // What must leave (or enter) each domain, over the adapters its ranks can use.
  struct Domain {
    double leaving = 0;
    std::vector<std::pair<int, int>> adapters;
  };
  std::unordered_map<int, Domain> domains;  // of many small groups each is in few
  double bound = 0;
  for (const Group& group : groups) {
    const double n = group.n(), m = group.count();
    for (const auto& members : group.domains) {
      const double g = static_cast<double>(members.size());
      const Rank& first = group.ranks[static_cast<size_t>(members.front())];
      double rank_Bps = fabric_.nvlink_Bps;
      if (m > 1) {
        double must = bytes;
        if (op == Operation::all_reduce && !in_network) must = 2 * (m - 1) / m * bytes;
        if (op == Operation::reduce_scatter || op == Operation::all_gather) must = (m - 1) / m * bytes;
        if (op == Operation::all_to_all) must = g * (n - g) / n * bytes;
        Domain& domain = domains[first.node / fabric_.nodes_per_domain];
        domain.leaving += must;
        for (const int r : members)
          for (const int k : group.adapters(r))
            domain.adapters.emplace_back(group.ranks[static_cast<size_t>(r)].node, k);
        for (const int k : group.adapters(members.front()))
          rank_Bps += fabric_.link_capacity_Bps(fabric_.nic_link_out(first.node, k));
      }
      if (g > 1) bound = std::max(bound, (in_network ? 1 : bus_factor(op, static_cast<int>(g))) * bytes / rank_Bps);
    }
  }
  for (auto& [id, d] : domains) {
    std::sort(d.adapters.begin(), d.adapters.end());
    d.adapters.erase(std::unique(d.adapters.begin(), d.adapters.end()), d.adapters.end());
    double capacity = 0;
    for (const auto& [node, k] : d.adapters) capacity += fabric_.link_capacity_Bps(fabric_.nic_link_out(node, k));
    if (capacity > 0) bound = std::max(bound, d.leaving / capacity);
  }
  return bound;
}

CollectiveCost Collectives::cost(Operation op, const std::vector<Rank>& ranks, double bytes) {
  return cost(op, std::vector<std::vector<Rank>>{ranks}, bytes);
}

CollectiveCost Collectives::cost(Operation op, const std::vector<std::vector<Rank>>& groups, double bytes) {
  return std::move(costs(op, groups, {bytes}).front());
}

Collectives::Ways Collectives::ways(Operation op, const std::vector<std::vector<Rank>>& groups) {
  check_ranks(fabric_, groups);
  Ways w;
  const size_t n = groups.front().size();
  const bool inside = std::all_of(groups.begin(), groups.end(), [&](const auto& g) { return one_domain(g); });
  w.closed_form = n < 2 || (inside && speeds_.measured(op) &&
                            (options_.algorithm == "auto" || options_.algorithm == measured_as(op)));
  if (n < 2) return w;
  w.sets.reserve(groups.size());
  for (const auto& ranks : groups) w.sets.emplace_back(fabric_, ranks);
  if (!w.closed_form || options_.algorithm == "auto")
    for (const CollectiveAlgorithm* a : candidates(op, w.sets, w.closed_form)) {
      Built b = build(op, w.sets, *a);
      if (b.algorithm != nullptr) w.built.push_back(std::move(b));
    }
  const bool sharp = options_.sharp && options_.algorithm == "auto" && op == Operation::all_reduce;
  for (const CollectiveAlgorithm& a : *options_.known)
    for (const Group& g : w.sets)
      if (sharp && a.name == "sharp" && g.count() > 1 && w.remark.empty())
        if (const std::string why = a.refusal(g, op); !why.empty())
          w.remark = fmt::format("SHARP is switched on, and all-reduces go another way: {}", why);
  const auto may = [&](bool allowed, const char* name) { return allowed || options_.algorithm == name; };
  const bool in_network =
      op == Operation::all_reduce && (may(options_.nvls, "nvls") || may(options_.sharp && w.remark.empty(), "sharp"));
  if (options_.bound) w.bound_per_byte = bound_s(op, w.sets, 1, in_network);
  if (!options_.explain) w.sets.clear(), w.sets.shrink_to_fit();
  return w;
}

std::vector<CollectiveCost> Collectives::costs(Operation op, const std::vector<std::vector<Rank>>& groups,
                                               const std::vector<double>& sizes) {
  const Ways* known = groups.empty() ? nullptr : known_->find(op, groups);
  const Ways& w = known != nullptr ? *known : known_->keep(op, groups, ways(op, groups), options_.explain);
  const int n = static_cast<int>(groups.front().size());
  const double last_s = options_.late_s.empty() ? 0 : *std::max_element(options_.late_s.begin(), options_.late_s.end());
  std::vector<CollectiveCost> out;
  for (const double bytes : sizes) {
    CollectiveCost best;
    best.bytes = bytes;
    if (w.closed_form) {
      best.inside_domain = true;
      best.algorithm = measured_as(op);
      best.time_s = best.load.latency_s = domain_time_s(op, n, bytes);
      if (n > 1) best.bottleneck = "NVLink";
    }
    best = chosen(op, bytes, w.built, std::move(best));
    best.operation = op;
    best.ranks = n;
    if (!best.remark.empty()) {
      best.remark = fmt::format("{} over {} ranks: {}", choice_name(op), n, best.remark);
      remarks_.insert(best.remark);
    }
    if (!w.remark.empty()) {
      remarks_.insert(w.remark);
      best.remark += (best.remark.empty() ? "" : "; ") + w.remark;
    }
    if (options_.explain) add_refusals(w.sets, op, best.considered);
    best.late_s = last_s;
    best.time_s += last_s;
    best.bound_s = w.bound_per_byte * bytes;
    out.push_back(std::move(best));
  }
  return out;
}

}  // namespace tw::network
