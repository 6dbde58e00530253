#include "step/step_network.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "network/message_engine.hpp"
#include "step/visit_network.hpp"

namespace tw {
namespace {

using Collective = network::Operation;
using network::Rank;

Sharing sharing_of(const StepInputs& in, const std::vector<ParameterGroup>& groups) {
  Sharing s;
  s.sharded = in.plan->sharding != Sharding::none && in.workload == nullptr;
  s.owners = s.sharded && in.software->streams.tensors_have_owners;
  double bytes = 0;
  for (int c = 0; c < in.plan->vp && s.owners; ++c) bytes += exchanged_gradients(in, groups, c * in.plan->pp).dense;
  // Tensors are whole: products of queries, keys and values, of the output and of the MLP in each layer, both ends.
  const int tensors = s.owners ? in.network->layers * (2 + in.network->mlp_matrices()) / in.plan->pp + 2 : 1;
  s.owned_bytes =
      bytes * 2 / in.software->memory.gradient_bytes_per_parameter / std::min(in.plan->sharded_over(), tensors);
  return s;
}

// Times of exchanges inside a layer, remembered: a layer asks for few different ones many times. All replicas do the
// same at the same time: the groups of a whole stage are one load, since they may share links.
ExchangeTime exchange_times(const RankGrid& grid, const Plan& plan, double round_s, const Sharing& sharing,
                            std::shared_ptr<network::Collectives> collectives) {
  struct OfStage {
    Groups groups;
    bool inside;
  };
  const auto groups = std::make_shared<std::vector<OfStage>>();  // [Among]
  for (size_t a = 0; a < static_cast<size_t>(Among::count_); ++a) {
    OfStage g{groups_of_worker(grid, plan, static_cast<Among>(a), 0, 0, 1), true};
    for (const auto& ranks : g.groups) g.inside = g.inside && collectives->one_domain(ranks);
    groups->push_back(std::move(g));
  }
  const auto known = std::make_shared<std::map<std::pair<Exchange, double>, double>>();
  return [=](Exchange what, double bytes) {
    const auto [at, fresh] = known->try_emplace({what, bytes}, 0.0);
    if (!fresh) return at->second;
    const Collective op = operation_of(what, sharing);
    const OfStage& g = (*groups)[static_cast<size_t>(among(what, sharing))];
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

// The classes of a step's exchanges, as they are added.
class NetworkBuilder {
 public:
  NetworkBuilder(StepNetwork& net, const StepInputs& in, const RankGrid& grid, const Sharing& sharing,
                 network::Collectives& collectives, bool messages)
      : net_(net),
        in_(in),
        plan_(*in.plan),
        grid_(grid),
        sharing_(sharing),
        collectives_(collectives),
        messages_(messages) {}

  void add_sample_exchange() {
    if (in_.workload == nullptr || in_.workload->exchange_per_sample.value() <= 0 || plan_.dp <= 1) return;
    const double bytes = in_.workload->exchange_per_sample.value() * plan_.gbs / plan_.dp;
    const auto ranks = grid_.gradient_groups(0);
    net_.sample_exchange_s = collectives_.one_domain(ranks.front())
                                 ? collectives_.domain_time_s(Collective::all_to_all, plan_.dp, bytes)
                                 : collectives_.cost(Collective::all_to_all, ranks, bytes).time_s;
  }

  // Gradients and weights of a stage. Bytes decide algorithms, not the load: those of a mean chunk's bucket.
  void add_gradients(const std::vector<ParameterGroup>& groups, int s) {
    const auto at = static_cast<size_t>(s);
    SharedSum bytes;
    if (in_.workload != nullptr && plan_.dp * plan_.cp > 1) bytes.dense = in_.workload->gradients.value();
    for (int c = 0; c < plan_.vp && in_.workload == nullptr; ++c) {
      const SharedSum chunk = exchanged_gradients(in_, groups, c * plan_.pp + s);
      bytes.dense += chunk.dense / plan_.vp;
      bytes.experts += chunk.experts / plan_.vp;
    }
    const auto exchange = [&](const std::string& what, Collective op, double size,
                              const std::vector<std::vector<Rank>>& ranks) {
      const double piece = op == Collective::broadcast ? sharing_.owned_bytes : size / gradient_buckets;
      return size > 0 ? add(what + " of stage " + std::to_string(s), op, ranks, piece) : -1;
    };
    const Collective reduce = sharing_.reduce();
    const auto same = grid_.gradient_groups(s);
    net_.gradient_exchange.push_back(
        exchange("gradients", reduce, bytes.dense, sharing_.owners ? grid_.replica_groups(s) : same));
    if (net_.gradient_exchange.back() >= 0 && !sharing_.owners && plan_.sharded_over() < plan_.dp * plan_.cp)
      add_pieces(bytes.dense, s, net_.classes[static_cast<size_t>(net_.gradient_exchange.back())]);
    net_.weight_gather.push_back(sharing_.sharded ? exchange("weights", sharing_.gather(), bytes.dense, same) : -1);
    if (sharing_.owners && net_.weight_gather.back() >= 0) {  // a chunk's weights come from all their owners, in turn
      const double owners = bytes.dense * 2 / in_.software->memory.gradient_bytes_per_parameter / sharing_.owned_bytes;
      net_.classes[static_cast<size_t>(net_.weight_gather.back())].latency_s *= owners;
      if (messages_)
        for (network::ClassPart& part : net_.parts[static_cast<size_t>(net_.weight_gather.back())])
          part.times = std::max(1, static_cast<int>(owners + 0.5)), part.share = 1.0 / part.times;
    }
    if (bytes.experts <= 0) return;
    const auto holders = grid_.expert_gradient_groups(s);
    net_.expert_exchange.resize(static_cast<size_t>(plan_.pp), -1);
    net_.expert_gather.resize(static_cast<size_t>(plan_.pp), -1);
    net_.expert_exchange[at] = exchange("experts' gradients", reduce, bytes.experts, holders);
    if (sharing_.sharded)
      net_.expert_gather[at] = exchange("experts' weights", Collective::all_gather, bytes.experts, holders);
  }

  void add_hand_overs(int replicas) {
    const double bytes = 2 * local_tokens(*in_.training, plan_) * static_cast<double>(in_.network->hidden) /
                         (plan_.sequence_parallel ? plan_.tp : 1);
    const bool wraps = plan_.vp > 1;
    for (int s = 0; s < plan_.pp; ++s) {
      const int next = (s + 1) % plan_.pp, before = (s + plan_.pp - 1) % plan_.pp;
      auto& forward = net_.forward_hand_over.emplace_back();
      auto& backward = net_.backward_hand_over.emplace_back();
      const auto hand_over = [&](const std::string& what, int replica, int to) {
        return add(what, Collective::send_recv, pairs_of(replicas, replica, s, to), bytes);
      };
      for (int r = 0; r < replicas; ++r) {
        forward.push_back(next == 0 && !wraps ? -1 : hand_over("activations of stage " + std::to_string(s), r, next));
        backward.push_back(s == 0 && !wraps ? -1
                                            : hand_over("gradients to stage " + std::to_string(before), r, before));
      }
    }
  }

 private:
  int add(const std::string& name, Collective op, const std::vector<std::vector<Rank>>& groups, double bytes) {
    network::CollectiveCost cost = collectives_.cost(op, groups, bytes);
    cost.load.name = name;
    if (messages_) net_.parts.push_back(parts_of(cost, groups));
    net_.classes.push_back(std::move(cost.load));
    return static_cast<int>(net_.classes.size()) - 1;
  }

  // Hybrid sharding: pieces are then summed over the groups, a bucket at a time.
  void add_pieces(double bytes, int s, network::LoadClass& load) {
    const double pieces = plan_.sharded_over();
    const auto outer =
        collectives_.cost(Collective::all_reduce, grid_.piece_groups(s), bytes / gradient_buckets / pieces);
    net_.inside_first.resize(static_cast<size_t>(plan_.pp), false);
    if (load.uses.empty()) {  // its latency is the time of a whole bucket: that depends on the bucket
      net_.inside_first[static_cast<size_t>(s)] = true;
      load.latency_s = 0;
    }
    for (const network::LinkUse& use : outer.load.uses) load.uses.push_back({use.link, use.weight / pieces});
    load.latency_s += outer.load.latency_s;
    if (!messages_) return;
    for (network::ClassPart& part : parts_of(outer, grid_.piece_groups(s), 1 / pieces))
      net_.parts.back().push_back(std::move(part));
  }

  // A representative hands over when all replicas do: its class carries what all of them send, so that links that they
  // share are shared.
  std::vector<std::vector<Rank>> pairs_of(int replicas, int replica, int from, int to) const {
    if (replicas > 1) return grid_.hand_over_pairs(replica, from, to);
    std::vector<std::vector<Rank>> all;
    for (int d = 0; d < plan_.dp; ++d)
      for (auto& pair : grid_.hand_over_pairs(d, from, to)) all.push_back(std::move(pair));
    return all;
  }

  StepNetwork& net_;
  const StepInputs& in_;
  const Plan& plan_;
  const RankGrid& grid_;
  const Sharing& sharing_;
  network::Collectives& collectives_;
  bool messages_;
};

network::CollectiveOptions options_of(const StepInputs& in) {
  network::CollectiveOptions options;
  options.library = &library_of(*in.software, in.cluster->node.accelerator);
  options.sharp = in.software->streams.sharp;
  options.nvls = in.software->streams.nvls;
  options.bound = false;
  options.domain_floor_s = in.cluster->node.nvlink.issued_floor.value();
  return options;
}

}  // namespace

std::shared_ptr<network::Collectives> step_collectives(const StepInputs& in, const Fabric& fabric, bool alone) {
  struct Kept {  // the inputs may be gone before the costs are
    CollectiveLibrary library;
    std::optional<network::Collectives> collectives;
  };
  network::CollectiveOptions options = options_of(in);
  const auto kept = std::make_shared<Kept>();
  kept->library = *options.library;
  options.library = &kept->library;
  // Others name all of their links, and so do streams of SHARP.
  options.narrowest_links = alone && !options.sharp && fabric.routing == RoutingPolicy::adaptive;
  kept->collectives.emplace(fabric, options);
  return {kept, &*kept->collectives};
}

StepNetwork build_step_network(const StepInputs& in, const Fabric& fabric, const std::vector<int>& nodes, int replicas,
                               std::vector<network::LoadClass> others, bool messages) {
  // Single messages, too, name all of their links.
  return build_step_network(in, step_collectives(in, fabric, others.empty() && !messages), nodes, replicas,
                            std::move(others), messages);
}

std::unique_ptr<network::Engine> message_engine(const StepNetwork& net, const StepInputs& in, const Fabric& fabric) {
  std::vector<network::LoadClass> classes = net.classes;
  for (network::LoadClass& c : classes)
    for (network::LinkUse& use : c.uses) use.link = net.link_ids[static_cast<size_t>(use.link)];
  return network::message_engine(fabric, options_of(in), classes, net.parts);
}

StepNetwork build_step_network(const StepInputs& in, const std::shared_ptr<network::Collectives>& collectives,
                               const std::vector<int>& nodes, int replicas, std::vector<network::LoadClass> others,
                               bool messages) {
  const Fabric& fabric = collectives->fabric();
  const Plan& plan = *in.plan;
  StepNetwork net;
  const RankGrid grid(plan, fabric, nodes);
  const auto groups = in.workload == nullptr ? groups_of(in) : std::vector<ParameterGroup>{};
  const Sharing sharing = sharing_of(in, groups);
  net.exchange = exchange_times(grid, plan, in.software->streams.cp_round.value(), sharing, collectives);
  NetworkBuilder builder(net, in, grid, sharing, *collectives, messages);
  builder.add_sample_exchange();
  for (int s = 0; s < plan.pp; ++s) builder.add_gradients(groups, s);
  if (plan.pp > 1) builder.add_hand_overs(replicas);
  for (network::LoadClass& other : others) {
    net.others.push_back(static_cast<int>(net.classes.size()));
    net.classes.push_back(std::move(other));
  }
  if (messages) net.parts.resize(net.classes.size());
  if (in.workload == nullptr) add_visit_exchanges(net, in, fabric, grid, replicas, sharing, *collectives, messages);
  if (messages) net.parts.resize(net.classes.size());
  net.links = network::engine_links(fabric, net.classes, &net.link_ids);
  if (collectives->options().narrowest_links && collectives->router().tree() != nullptr)
    net.other_links = [collectives](std::vector<double>& loads) { collectives->router().tree()->widen(loads); };
  return net;
}

}  // namespace tw
