#include "step/step_network.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "network/message_engine.hpp"
#include "step/visit_network.hpp"

namespace tw {
namespace {

using Collective = network::Operation;
using network::Rank;

// A kernel that the host has issued ahead starts without the launch that a lone call pays for.
constexpr double kIssuedFloor_s = 10e-6;

Sharing sharing_of(const StepInputs& in, const std::vector<ParameterGroup>& groups) {
  Sharing s;
  s.sharded = in.plan->sharding != Sharding::none && in.workload == nullptr;
  s.owners = s.sharded && in.software->tensors_have_owners;
  double bytes = 0;
  for (int c = 0; c < in.plan->vp && s.owners; ++c) bytes += exchanged_gradients(in, groups, c * in.plan->pp).dense;
  // Tensors are whole: products of queries, keys and values, of the output and of the MLP in each layer, both ends.
  const int tensors = s.owners ? in.network->layers * (2 + in.network->mlp_matrices()) / in.plan->pp + 2 : 1;
  s.owned_bytes =
      bytes * 2 / in.software->gradient_bytes_per_parameter / std::min(in.plan->sharded_over(), tensors);
  return s;
}

// Times of exchanges inside a layer, remembered: a layer asks for few different ones many times.
ExchangeTime exchange_times(const RankGrid& grid, double round_s, const Sharing& sharing,
                            std::shared_ptr<network::Collectives> collectives) {
  struct Group {
    std::vector<std::vector<Rank>> groups;
    bool inside;
  };
  const auto group = [&](std::vector<std::vector<Rank>> groups) {
    bool inside = true;
    for (const auto& g : groups) inside = inside && collectives->one_domain(g);
    return Group{std::move(groups), inside};
  };
  // In the order of Among.
  const auto groups = std::make_shared<std::vector<Group>>();
  for (auto& g : {grid.tp_groups(0), grid.cp_groups(0), grid.ep_groups(), grid.expert_tp_groups(),
                  grid.gradient_groups(0), grid.piece_groups(0), grid.expert_gradient_groups(0), grid.replica_groups(0)})
    groups->push_back(group(g));
  const auto known = std::make_shared<std::map<std::pair<Exchange, double>, double>>();
  return [=](Exchange what, double bytes) {
    const auto [at, fresh] = known->try_emplace({what, bytes}, 0.0);
    if (!fresh) return at->second;
    const Collective op = operation_of(what, sharing);
    const Group& g = (*groups)[static_cast<size_t>(among(what, sharing))];
    const auto ranks = static_cast<int>(g.groups.front().size());
    if (ranks < 2) return 0.0;
    const double messages =
        what == Exchange::weight_gather && sharing.owned_bytes > 0 ? std::max(1.0, bytes / sharing.owned_bytes) : 1;
    const double each = bytes / messages;
    const double time_s = messages * (g.inside ? collectives->domain_time_s(op, ranks, each)
                                               : collectives->cost(op, g.groups, each).time_s);
    return at->second = what == Exchange::cp_exchange ? std::max(time_s, round_s) : time_s;
  };
}

network::CollectiveOptions collective_options(const StepInputs& in) {
  network::CollectiveOptions options;
  options.sharp = in.software->sharp;
  options.nvls = in.software->nvls;
  options.domain_floor_s = kIssuedFloor_s;
  return options;
}

}  // namespace

std::unique_ptr<network::Engine> message_engine(const StepNetwork& net, const StepInputs& in, const Fabric& fabric) {
  std::vector<network::LoadClass> classes = net.classes;
  for (network::LoadClass& c : classes)
    for (network::LinkUse& use : c.uses) use.link = net.link_ids[static_cast<size_t>(use.link)];
  return network::message_engine(fabric, collective_options(in), classes, net.parts);
}

StepNetwork build_step_network(const StepInputs& in, const Fabric& fabric, const std::vector<int>& nodes, int replicas,
                               std::vector<network::LoadClass> others, bool messages) {
  const Plan& plan = *in.plan;
  StepNetwork net;
  network::CollectiveOptions options = collective_options(in);
  // Others name all of their links, and so do streams of SHARP, and single messages.
  options.narrowest_links =
      others.empty() && !options.sharp && !messages && fabric.routing == RoutingPolicy::adaptive;
  const auto collectives = std::make_shared<network::Collectives>(fabric, options);
  const RankGrid grid(plan, fabric, nodes);
  const auto groups = in.workload == nullptr ? groups_of(in) : std::vector<ParameterGroup>{};
  const Sharing sharing = sharing_of(in, groups);
  net.exchange = exchange_times(grid, in.software->cp_round.value(), sharing, collectives);

  const auto add = [&](const std::string& name, Collective op, const std::vector<std::vector<Rank>>& groups,
                       double bytes) {
    network::CollectiveCost cost = collectives->cost(op, groups, bytes);
    if (op == Collective::send_recv) net.hand_over_s = std::max(net.hand_over_s, cost.time_s);
    cost.load.name = name;
    if (messages) net.parts.push_back(parts_of(cost, groups));
    net.classes.push_back(std::move(cost.load));
    return static_cast<int>(net.classes.size()) - 1;
  };
  if (in.workload != nullptr && in.workload->exchange_per_sample.value() > 0 && plan.dp > 1) {
    const double bytes = in.workload->exchange_per_sample.value() * plan.gbs / plan.dp;
    const auto ranks = grid.gradient_groups(0);
    net.sample_exchange_s = collectives->one_domain(ranks.front())
                                ? collectives->domain_time_s(Collective::all_to_all, plan.dp, bytes)
                                : collectives->cost(Collective::all_to_all, ranks, bytes).time_s;
  }
  // Bytes decide algorithms, not the load: those of a mean chunk's bucket.
  for (int s = 0; s < plan.pp; ++s) {
    SharedSum bytes;
    if (in.workload != nullptr && plan.dp * plan.cp > 1) bytes.dense = in.workload->gradients.value();
    for (int c = 0; c < plan.vp && in.workload == nullptr; ++c) {
      const SharedSum chunk = exchanged_gradients(in, groups, c * plan.pp + s);
      bytes.dense += chunk.dense / plan.vp;
      bytes.experts += chunk.experts / plan.vp;
    }
    const auto exchange = [&](const std::string& what, Collective op, double size,
                              const std::vector<std::vector<Rank>>& ranks) {
      const double piece = op == Collective::broadcast ? sharing.owned_bytes : size / gradient_buckets;
      return size > 0 ? add(what + " of stage " + std::to_string(s), op, ranks, piece) : -1;
    };
    const Collective reduce = sharing.reduce();
    const auto same = grid.gradient_groups(s);
    net.gradient_exchange.push_back(
        exchange("gradients", reduce, bytes.dense, sharing.owners ? grid.replica_groups(s) : same));
    // Hybrid sharding: pieces are then summed over the groups, a bucket at a time.
    if (net.gradient_exchange.back() >= 0 && !sharing.owners && plan.sharded_over() < plan.dp * plan.cp) {
      const double pieces = plan.sharded_over();
      const auto outer =
          collectives->cost(Collective::all_reduce, grid.piece_groups(s), bytes.dense / gradient_buckets / pieces);
      network::LoadClass& load = net.classes[static_cast<size_t>(net.gradient_exchange.back())];
      net.inside_first.resize(static_cast<size_t>(plan.pp), false);
      if (load.uses.empty()) {  // its latency is the time of a whole bucket: that depends on the bucket
        net.inside_first[static_cast<size_t>(s)] = true;
        load.latency_s = 0;
      }
      for (const network::LinkUse& use : outer.load.uses) load.uses.push_back({use.link, use.weight / pieces});
      load.latency_s += outer.load.latency_s;
      if (messages)
        for (network::ClassPart& part : parts_of(outer, grid.piece_groups(s), 1 / pieces))
          net.parts.back().push_back(std::move(part));
    }
    net.weight_gather.push_back(sharing.sharded ? exchange("weights", sharing.gather(), bytes.dense, same) : -1);
    if (sharing.owners && net.weight_gather.back() >= 0) {  // a chunk's weights come from all their owners, in turn
      const double owners = bytes.dense * 2 / in.software->gradient_bytes_per_parameter / sharing.owned_bytes;
      net.classes[static_cast<size_t>(net.weight_gather.back())].latency_s *= owners;
      if (messages)
        for (network::ClassPart& part : net.parts[static_cast<size_t>(net.weight_gather.back())])
          part.times = std::max(1, static_cast<int>(owners + 0.5)), part.share = 1.0 / part.times;
    }
    if (bytes.experts <= 0) continue;
    const auto holders = grid.expert_gradient_groups(s);
    net.expert_exchange.resize(static_cast<size_t>(plan.pp), -1);
    net.expert_gather.resize(static_cast<size_t>(plan.pp), -1);
    net.expert_exchange[static_cast<size_t>(s)] = exchange("experts' gradients", reduce, bytes.experts, holders);
    if (sharing.sharded)
      net.expert_gather[static_cast<size_t>(s)] =
          exchange("experts' weights", Collective::all_gather, bytes.experts, holders);
  }
  if (plan.pp > 1) {
    const double bytes = 2 * local_tokens(*in.training, plan) * static_cast<double>(in.network->hidden) /
                         (plan.sequence_parallel ? plan.tp : 1);
    // A representative hands over when all replicas do: its class carries what all of them send, so that links that
    // they share are shared.
    const auto pairs_of = [&](int replica, int from, int to) {
      if (replicas > 1) return grid.hand_over_pairs(replica, from, to);
      std::vector<std::vector<Rank>> all;
      for (int d = 0; d < plan.dp; ++d)
        for (auto& pair : grid.hand_over_pairs(d, from, to)) all.push_back(std::move(pair));
      return all;
    };
    for (int s = 0; s < plan.pp; ++s) {
      net.forward_hand_over.emplace_back();
      net.backward_hand_over.emplace_back();
      const int next = (s + 1) % plan.pp, before = (s + plan.pp - 1) % plan.pp;
      const bool wraps = plan.vp > 1;
      for (int r = 0; r < replicas; ++r) {
        net.forward_hand_over.back().push_back(
            next == 0 && !wraps
                ? -1
                : add("activations of stage " + std::to_string(s), Collective::send_recv, pairs_of(r, s, next), bytes));
        net.backward_hand_over.back().push_back(s == 0 && !wraps
                                                    ? -1
                                                    : add("gradients to stage " + std::to_string(before),
                                                          Collective::send_recv, pairs_of(r, s, before), bytes));
      }
    }
  }
  for (network::LoadClass& other : others) {
    net.others.push_back(static_cast<int>(net.classes.size()));
    net.classes.push_back(std::move(other));
  }
  if (messages) net.parts.resize(net.classes.size());
  if (in.workload == nullptr) add_visit_exchanges(net, in, fabric, grid, replicas, sharing, *collectives, messages);
  if (messages) net.parts.resize(net.classes.size());
  net.links = network::engine_links(fabric, net.classes, &net.link_ids);
  if (options.narrowest_links && collectives->router().tree() != nullptr)
    net.other_links = [collectives](std::vector<double>& loads) { collectives->router().tree()->widen(loads); };
  return net;
}

}  // namespace tw
