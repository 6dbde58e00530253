#include "network/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "network/flows.hpp"

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

bool even_groups(const Fabric& fabric, const std::vector<std::vector<Rank>>& groups) {
  for (const auto& g : groups) {
    const auto domains = by_domain(fabric, g);
    for (const auto& d : domains)
      if (d.size() != domains.front().size()) return false;
  }
  return true;
}

}  // namespace

// Loads by link, in a dense array with a list of the links touched.
struct Collectives::Scratch {
  std::vector<double> load;
  std::vector<int> touched;
  void add(int link, double weight) {
    double& x = load[static_cast<size_t>(link)];
    if (x == 0) touched.push_back(link);
    x += weight;
  }
};

struct Collectives::Built {
  std::vector<LinkUse> uses;  // before the efficiency of the protocol
  Rounds rounds;
  double hops = 0;  // cables of a message between domains: mean, of single messages the longest way
};

Collectives::Collectives(const Fabric& fabric, CollectiveOptions options)
    : fabric_(fabric),
      options_(options),
      router_(fabric, options.seed),
      speeds_(fabric.nvlink),
      scratch_(std::make_unique<Scratch>()) {
  scratch_->load.assign(static_cast<size_t>(fabric.link_count()), 0);
}
Collectives::~Collectives() = default;

bool Collectives::one_domain(const std::vector<Rank>& ranks) const {
  return std::all_of(ranks.begin(), ranks.end(), [&](const Rank& r) {
    return r.node / fabric_.nodes_per_domain == ranks.front().node / fabric_.nodes_per_domain;
  });
}

double Collectives::domain_time_s(Operation operation, int ranks, double bytes) const {
  return speeds_.time_s(operation, ranks, bytes, options_.domain_floor_s);
}

Collectives::Built Collectives::build(Operation op, const std::vector<std::vector<Rank>>& groups, Algorithm algorithm) {
  Built built;
  Scratch& s = *scratch_;
  double hops = 0, messages = 0;
  int longest = 0;
  for (const auto& ranks : groups) {
    const FlowPlan plan = plan_flows(fabric_, op, algorithm, ranks);
    built.rounds = plan.rounds;
    const double n = static_cast<double>(ranks.size());
    // Measured bus bandwidth inside a domain stands below the line rate: count NVLink bytes up by that.
    const double nvlink =
        1 / speeds_.efficiency(op, static_cast<int>(std::min<size_t>(
                                       ranks.size(), static_cast<size_t>(fabric_.gpus * fabric_.nodes_per_domain))));
    std::vector<std::vector<int>> adapters;
    for (const Rank& r : ranks) adapters.push_back(adapters_of(fabric_, r));
    const auto need_adapter = [&](size_t r) {
      if (adapters[r].empty())
        throw SimulationError(fmt::format("node-{} GPU {} has no live adapter", ranks[r].node, ranks[r].gpu));
    };
    const auto send = [&](size_t a, size_t b, double share) {
      const Rank &from = ranks[a], &to = ranks[b];
      if (from.node / fabric_.nodes_per_domain == to.node / fabric_.nodes_per_domain) {
        s.add(fabric_.nvlink_out(from.node, from.gpu), share * nvlink);
        s.add(fabric_.nvlink_in(to.node, to.gpu), share * nvlink);
        return;
      }
      need_adapter(a);
      need_adapter(b);
      const size_t lanes = std::max(adapters[a].size(), adapters[b].size());
      for (size_t i = 0; i < lanes; ++i) {
        const int out = adapters[a][i % adapters[a].size()], in = adapters[b][i % adapters[b].size()];
        for (const LinkShare& l : router_.route(from.node, out, to.node, in))
          s.add(l.link, share * l.share / static_cast<double>(lanes));
        const int cables = router_.hops(from.node, out, to.node, in);
        longest = std::max(longest, cables);
        hops += cables;
        ++messages;
      }
    };
    for (const Flow& f : plan.flows) send(static_cast<size_t>(f.from), static_cast<size_t>(f.to), f.share);
    if (plan.nvls_out > 0)
      for (const Rank& r : ranks) {
        s.add(fabric_.nvlink_out(r.node, r.gpu), plan.nvls_out / options_.nvls_efficiency);
        s.add(fabric_.nvlink_in(r.node, r.gpu), plan.nvls_in / options_.nvls_efficiency);
      }
    if (plan.all_pairs && (router_.policy == RoutingPolicy::ecmp && n <= 512)) {
      for (size_t a = 0; a < ranks.size(); ++a)
        for (size_t b = 0; b < ranks.size(); ++b)
          if (a != b) send(a, b, 1 / n);
    } else if (plan.all_pairs) {
      // The same flows summed by switch, since n^2 of them would be too many.
      std::map<int, double> inside;                               // domain -> ranks
      std::map<int, std::map<int, double>> at_switch, in_domain;  // switch -> domain -> ranks; and the other way
      for (const Rank& r : ranks) ++inside[r.node / fabric_.nodes_per_domain];
      for (size_t r = 0; r < ranks.size(); ++r) {
        const int domain = ranks[r].node / fabric_.nodes_per_domain;
        const double near = inside[domain] - 1, far = n - inside[domain];
        if (near > 0) {
          s.add(fabric_.nvlink_out(ranks[r].node, ranks[r].gpu), near / n * nvlink);
          s.add(fabric_.nvlink_in(ranks[r].node, ranks[r].gpu), near / n * nvlink);
        }
        if (far == 0) continue;
        need_adapter(r);
        for (const int k : adapters[r]) {
          const double part = 1 / static_cast<double>(adapters[r].size());
          s.add(fabric_.nic_link_out(ranks[r].node, k), far / n * part);
          s.add(fabric_.nic_link_in(ranks[r].node, k), far / n * part);
          const int leaf = fabric_.nic_switch(ranks[r].node, k);
          at_switch[leaf][domain] += part;
          in_domain[domain][leaf] += part;
        }
      }
      std::map<int, double> all_at;
      for (const auto& [leaf, domains] : at_switch)
        for (const auto& [domain, count] : domains) all_at[leaf] += count;
      std::vector<double> loads(s.load.size(), 0);
      for (const auto& [to, domains] : at_switch) {
        router_.search_whole(to);
        std::vector<double> entering(fabric_.vertices.size(), 0);
        for (const auto& [from, count] : all_at) {
          if (from != to && router_.distance(from, to) < 0)
            throw SimulationError(fmt::format("there is no live path from {} to {}",
                                              fabric_.vertices[static_cast<size_t>(from)].name,
                                              fabric_.vertices[static_cast<size_t>(to)].name));
          entering[static_cast<size_t>(from)] = count * all_at[to] / n;
          hops += router_.distance(from, to) + 2;
          ++messages;
        }
        for (const auto& [domain, count] : domains)  // what stays inside a domain does not enter the fabric
          for (const auto& [from, other] : in_domain[domain]) entering[static_cast<size_t>(from)] -= count * other / n;
        for (double& e : entering) e = std::max(0.0, e);
        router_.spread(to, entering, loads);
      }
      for (size_t l = 0; l < loads.size(); ++l)
        if (loads[l] > 0) s.add(static_cast<int>(l), loads[l]);
    }
    if (plan.sharp_share > 0) {
      // Each leaf sums what its adapters send and passes one stream for each rail up to a root, spread over its links.
      std::map<std::pair<int, int>, double> rails;  // (leaf, place of the rank in its domain) -> share
      std::set<int> leaves;
      for (const auto& domain : by_domain(fabric_, ranks))
        for (size_t l = 0; l < domain.size(); ++l) {
          const auto r = static_cast<size_t>(domain[l]);
          need_adapter(r);
          for (const int k : adapters[r]) {
            const double part = plan.sharp_share / static_cast<double>(adapters[r].size());
            s.add(fabric_.nic_link_out(ranks[r].node, k), part);
            s.add(fabric_.nic_link_in(ranks[r].node, k), part);
            const int leaf = fabric_.nic_switch(ranks[r].node, k);
            leaves.insert(leaf);
            double& rail = rails[{leaf, static_cast<int>(l)}];
            rail = std::max(rail, part);
          }
        }
      if (leaves.size() > 1)
        for (const auto& [key, share] : rails) {
          std::vector<int> up;
          double capacity = 0;
          for (const int id : fabric_.cables_at[static_cast<size_t>(key.first)]) {
            const Cable& c = fabric_.cables[static_cast<size_t>(id)];
            const bool up_cable = c.kind == CableKind::uplink || c.kind == CableKind::core;
            if (!up_cable || c.a != key.first || c.failed || fabric_.vertices[static_cast<size_t>(c.b)].failed)
              continue;
            up.push_back(id);
            capacity += c.capacity_Bps;
          }
          if (up.empty())
            throw InputError({{fabric_.cluster_name, "/fabric/kind",
                               fmt::format("{} has no switch above it to reduce in",
                                           fabric_.vertices[static_cast<size_t>(key.first)].name),
                               "SHARP needs levels of switches"}});
          for (const int id : up) {
            const double part = share * fabric_.cables[static_cast<size_t>(id)].capacity_Bps / capacity;
            s.add(2 * id, part);
            s.add(2 * id + 1, part);
          }
        }
      hops += leaves.size() > 1 ? 4 : 2;
      ++messages;
    }
  }
  built.hops = messages > 0 ? hops / messages : 0;
  if (op == Operation::send_recv) built.hops = longest;  // one message each: the last to arrive ends it
  std::sort(s.touched.begin(), s.touched.end());
  for (const int link : s.touched) {
    built.uses.push_back({link, s.load[static_cast<size_t>(link)]});
    s.load[static_cast<size_t>(link)] = 0;
  }
  s.touched.clear();
  return built;
}

CollectiveCost Collectives::finished(Operation op, int ranks, double bytes, const Built& built, Algorithm algorithm) {
  CollectiveCost best;
  double slowest = 0;
  int narrow = -1;
  for (const LinkUse& use : built.uses) {
    const double t = use.weight / fabric_.link_capacity_Bps(use.link);
    if (t <= slowest) continue;
    slowest = t;
    narrow = use.link;
  }
  const Rounds& r = built.rounds;
  for (const auto& [name, protocol] : Choices<Protocol>::table()) {
    if (protocol == Protocol::automatic || (options_.protocol != Protocol::automatic && options_.protocol != protocol))
      continue;
    if ((r.nvls > 0 || r.sharp > 0) && protocol != Protocol::simple && options_.protocol == Protocol::automatic)
      continue;
    const ProtocolCost& c = options_.protocols[static_cast<size_t>(protocol) - 1];
    const double latency_s =
        (r.tree ? c.base_tree_s : c.base_ring_s) + r.nvlink * (r.tree ? c.nvlink_tree_s : c.nvlink_ring_s) +
        r.network * ((r.tree ? c.network_tree_s : c.network_ring_s) + built.hops * fabric_.hop_latency_s) +
        r.nvls * options_.nvls_phase_s + r.sharp * (options_.sharp_phase_s + 2 * built.hops * fabric_.hop_latency_s);
    const double efficiency = r.tree ? c.tree_efficiency : c.efficiency;
    const double time_s = latency_s + bytes * slowest / efficiency;
    if (best.ranks != 0 && time_s >= best.time_s) continue;
    best.ranks = ranks;
    best.time_s = time_s;
    best.protocol = protocol;
    best.load.latency_s = latency_s;
  }
  best.operation = op;
  best.algorithm = algorithm;
  best.bytes = bytes;
  best.load.uses = built.uses;
  const ProtocolCost& chosen = options_.protocols[static_cast<size_t>(best.protocol) - 1];
  const double efficiency = r.tree ? chosen.tree_efficiency : chosen.efficiency;
  for (LinkUse& use : best.load.uses) use.weight /= efficiency;
  if (narrow >= 0) best.bottleneck = fabric_.link_class(narrow);
  return best;
}

std::vector<Algorithm> Collectives::candidates(Operation op, const std::vector<std::vector<Rank>>& groups) const {
  if (options_.algorithm != Algorithm::automatic) return {options_.algorithm};
  if (op == Operation::all_to_all || op == Operation::send_recv) return {Algorithm::direct};
  std::vector<Algorithm> list{Algorithm::ring};
  // On a torus the rings run along its dimensions (there is no such choice in NCCL, which knows no torus).
  const bool torus = std::all_of(groups.begin(), groups.end(), [&](const auto& g) { return covers_torus(fabric_, g); });
  if (torus && op != Operation::broadcast) list.push_back(Algorithm::hierarchical);
  if (op == Operation::all_reduce) list.push_back(Algorithm::tree);
  return list;
}

double Collectives::bound_s(Operation op, const std::vector<std::vector<Rank>>& groups, double bytes,
                            bool in_network) const {
  // What must leave (or enter) each domain, over the adapters its ranks can use.
  std::map<int, double> leaving;
  std::map<int, std::set<std::pair<int, int>>> adapters;
  double bound = 0;
  for (const auto& ranks : groups) {
    const auto domains = by_domain(fabric_, ranks);
    const double n = static_cast<double>(ranks.size()), m = static_cast<double>(domains.size());
    for (const auto& members : domains) {
      const double g = static_cast<double>(members.size());
      const Rank& first = ranks[static_cast<size_t>(members.front())];
      const int domain = first.node / fabric_.nodes_per_domain;
      double rank_Bps = fabric_.nvlink_Bps;
      if (m > 1) {
        double must = bytes;
        if (op == Operation::all_reduce && !in_network) must = 2 * (m - 1) / m * bytes;
        if (op == Operation::reduce_scatter || op == Operation::all_gather) must = (m - 1) / m * bytes;
        if (op == Operation::all_to_all) must = g * (n - g) / n * bytes;
        leaving[domain] += must;
        for (const int r : members)
          for (const int k : adapters_of(fabric_, ranks[static_cast<size_t>(r)])) {
            adapters[domain].insert({ranks[static_cast<size_t>(r)].node, k});
            if (r == members.front()) rank_Bps += fabric_.link_capacity_Bps(fabric_.nic_link_out(first.node, k));
          }
      }
      if (g > 1) bound = std::max(bound, (in_network ? 1 : bus_factor(op, static_cast<int>(g))) * bytes / rank_Bps);
    }
  }
  for (const auto& [domain, must] : leaving) {
    double capacity = 0;
    for (const auto& [node, k] : adapters[domain]) capacity += fabric_.link_capacity_Bps(fabric_.nic_link_out(node, k));
    if (capacity > 0) bound = std::max(bound, must / capacity);
  }
  return bound;
}

CollectiveCost Collectives::cost(Operation op, const std::vector<Rank>& ranks, double bytes) {
  return cost(op, std::vector<std::vector<Rank>>{ranks}, bytes);
}

CollectiveCost Collectives::cost(Operation op, const std::vector<std::vector<Rank>>& groups, double bytes) {
  return std::move(costs(op, groups, {bytes}).front());
}

std::vector<CollectiveCost> Collectives::costs(Operation op, const std::vector<std::vector<Rank>>& groups,
                                               const std::vector<double>& sizes) {
  check_ranks(fabric_, groups);
  const int n = static_cast<int>(groups.front().size());
  const bool inside = std::all_of(groups.begin(), groups.end(), [&](const auto& g) { return one_domain(g); });
  const bool as_measured = options_.algorithm == Algorithm::automatic || options_.algorithm == Algorithm::ring ||
                           options_.algorithm == Algorithm::direct;
  const bool closed_form = n < 2 || (inside && speeds_.measured(op) && as_measured);
  std::vector<Algorithm> list;
  if (!closed_form) list = candidates(op, groups);
  if (n > 1 && options_.algorithm == Algorithm::automatic && op == Operation::all_reduce &&
      even_groups(fabric_, groups)) {
    if (options_.nvls) list.push_back(Algorithm::nvls);
    if (options_.sharp && !inside) list.push_back(Algorithm::sharp);
  }
  std::vector<std::pair<Algorithm, Built>> built;
  for (const Algorithm a : list) built.emplace_back(a, build(op, groups, a));
  const bool in_network = op == Operation::all_reduce && (options_.algorithm == Algorithm::nvls || options_.nvls ||
                                                          options_.algorithm == Algorithm::sharp || options_.sharp);
  const double bound_per_byte = n < 2 ? 0 : bound_s(op, groups, 1, in_network);
  std::vector<CollectiveCost> out;
  for (const double bytes : sizes) {
    CollectiveCost best;
    best.operation = op;
    best.bytes = bytes;
    if (closed_form) {
      best.ranks = n;
      best.inside_domain = true;
      best.algorithm = op == Operation::all_to_all || op == Operation::send_recv ? Algorithm::direct : Algorithm::ring;
      best.time_s = best.load.latency_s = domain_time_s(op, n, bytes);
      if (n > 1) best.bottleneck = "NVLink";
    }
    for (const auto& [a, b] : built) {
      CollectiveCost c = finished(op, n, bytes, b, a);
      if (best.ranks == 0 || c.time_s < best.time_s) best = std::move(c);
    }
    best.bound_s = bound_per_byte * bytes;
    out.push_back(std::move(best));
  }
  return out;
}

std::vector<double> doubling_sizes(double from, double to) {
  std::vector<double> sizes;
  for (double b = from; b <= to * (1 + 1e-9); b *= 2) sizes.push_back(b);
  return sizes;
}

std::vector<double> cable_bytes(const Fabric& fabric, const LoadClass& load, double bytes) {
  std::vector<double> moved(fabric.cables.size(), 0);
  for (const LinkUse& use : load.uses)
    if (use.link < fabric.cable_links()) moved[static_cast<size_t>(use.link / 2)] += use.weight * bytes;
  return moved;
}

std::vector<Rank> ranks_of(const Fabric& fabric, const std::vector<int>& nodes) {
  std::vector<Rank> ranks;
  for (const int node : nodes)
    for (int gpu = 0; gpu < fabric.gpus; ++gpu) ranks.push_back({node, gpu});
  return ranks;
}

std::vector<Link> engine_links(const Fabric& fabric, std::vector<LoadClass>& classes, std::vector<int>* ids) {
  std::vector<int> place(static_cast<size_t>(fabric.link_count()), -1);
  std::vector<Link> links;
  for (LoadClass& c : classes)
    for (LinkUse& use : c.uses) {
      int& p = place[static_cast<size_t>(use.link)];
      if (p < 0) {
        p = static_cast<int>(links.size());
        links.push_back({fabric.link_name(use.link), fabric.link_capacity_Bps(use.link)});
        if (ids != nullptr) ids->push_back(use.link);
      }
      use.link = p;
    }
  return links;
}

}  // namespace tw::network
