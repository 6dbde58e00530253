#include "network/message_level.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "network/flows.hpp"

namespace tw::network {
namespace {

class Programmer {
 public:
  Programmer(const Fabric& fabric, Operation op, const std::vector<Rank>& ranks, const CollectiveOptions& options)
      : fabric_(fabric), ranks_(ranks), options_(options), router_(fabric, options.seed) {
    const Protocol p = options.protocol == Protocol::automatic ? Protocol::simple : options.protocol;
    protocol_ = options.protocols[static_cast<size_t>(p) - 1];
    const int domain = fabric.gpus * fabric.nodes_per_domain;
    nvlink_ = 1 / DomainSpeeds(fabric.nvlink).efficiency(op, std::min(domain, static_cast<int>(ranks.size())));
    program.begin_s = protocol_.base_ring_s;
  }

  bool same_domain(int a, int b) const {
    return ranks_[static_cast<size_t>(a)].node / fabric_.nodes_per_domain ==
           ranks_[static_cast<size_t>(b)].node / fabric_.nodes_per_domain;
  }

  // A message from a to b; between domains through the adapter beside `gate`, to which it goes over NVLink.
  int path(int a, int b, int gate) {
    const auto [it, fresh] = classes_.try_emplace({a, b, gate}, static_cast<int>(program.classes.size()));
    if (!fresh) return it->second;
    const Rank &from = ranks_[static_cast<size_t>(a)], &to = ranks_[static_cast<size_t>(b)];
    LoadClass c;
    c.name = fmt::format("node-{} GPU {} to node-{} GPU {}", from.node, from.gpu, to.node, to.gpu);
    if (same_domain(a, b)) {
      c.uses = {{fabric_.nvlink_out(from.node, from.gpu), nvlink_}, {fabric_.nvlink_in(to.node, to.gpu), nvlink_}};
      c.latency_s = protocol_.nvlink_ring_s;
    } else {
      const Rank& out = ranks_[static_cast<size_t>(gate)];
      if (gate != a)
        c.uses = {{fabric_.nvlink_out(from.node, from.gpu), nvlink_}, {fabric_.nvlink_in(out.node, out.gpu), nvlink_}};
      const std::vector<int> mine = adapters_of(fabric_, out), theirs = adapters_of(fabric_, to);
      if (mine.empty() || theirs.empty()) throw SimulationError(c.name + ": no live adapter");
      for (const LinkShare& l : router_.route(out.node, mine.front(), to.node, theirs.front()))
        c.uses.push_back({l.link, l.share});
      c.latency_s = protocol_.network_ring_s +
                    router_.hops(out.node, mine.front(), to.node, theirs.front()) * fabric_.hop_latency_s;
    }
    for (LinkUse& use : c.uses) use.weight /= protocol_.efficiency;
    program.classes.push_back(std::move(c));
    return it->second;
  }

  int add(int load_class, double bytes) {
    program.messages.push_back({load_class, bytes, 0, {}});
    return static_cast<int>(program.messages.size()) - 1;
  }
  void after(int first, int second) {
    program.messages[static_cast<size_t>(first)].then.push_back(second);
    ++program.messages[static_cast<size_t>(second)].waits_for;
  }

  MessageProgram program;

 private:
  const Fabric& fabric_;
  const std::vector<Rank>& ranks_;
  const CollectiveOptions& options_;
  Router router_;
  ProtocolCost protocol_;
  double nvlink_ = 1;
  std::map<std::array<int, 3>, int> classes_;
};

struct RingEdge {
  int from, to, gate;
};

// The ring of one channel: as plan_flows() lays it.
std::vector<RingEdge> ring_edges(const Fabric& fabric, const std::vector<Rank>& ranks, int channel, bool from_root) {
  const auto domains = by_domain(fabric, ranks);
  std::vector<int> order, gates;
  for (size_t d = 0; d < domains.size(); ++d) {
    std::vector<int> gate_list;
    std::vector<std::pair<int, int>> seen;
    for (const int r : domains[d]) {
      const std::vector<int> adapters = adapters_of(fabric, ranks[static_cast<size_t>(r)]);
      const std::pair<int, int> key{ranks[static_cast<size_t>(r)].node, adapters.empty() ? -1 - r : adapters.front()};
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
      seen.push_back(key);
      gate_list.push_back(r);
    }
    const int gate = gate_list[static_cast<size_t>(channel) % gate_list.size()];
    std::vector<int> chain = domains[d];
    std::rotate(chain.begin(), std::find(chain.begin(), chain.end(), from_root && d == 0 ? chain.front() : gate),
                chain.end());
    order.insert(order.end(), chain.begin(), chain.end());
    gates.insert(gates.end(), chain.size(), gate);
  }
  std::vector<RingEdge> edges;
  for (size_t i = 0; i < order.size(); ++i) edges.push_back({order[i], order[(i + 1) % order.size()], gates[i]});
  return edges;
}

int channel_count(const Fabric& fabric, const std::vector<Rank>& ranks) {
  const auto domains = by_domain(fabric, ranks);
  if (domains.size() == 1) return 1;
  size_t most = 1;
  for (const auto& domain : domains) {
    std::vector<std::pair<int, int>> seen;
    for (const int r : domain) {
      const std::vector<int> adapters = adapters_of(fabric, ranks[static_cast<size_t>(r)]);
      if (adapters.empty()) continue;
      const std::pair<int, int> key{ranks[static_cast<size_t>(r)].node, adapters.front()};
      if (std::find(seen.begin(), seen.end(), key) == seen.end()) seen.push_back(key);
    }
    most = std::max(most, seen.size());
  }
  return static_cast<int>(most);
}

void ring_rounds(Programmer& p, const std::vector<RingEdge>& edges, int rounds, double chunk) {
  const size_t n = edges.size();
  std::vector<int> before(n), now(n);
  for (int r = 0; r < rounds; ++r) {
    for (size_t i = 0; i < n; ++i) {
      now[i] = p.add(p.path(edges[i].from, edges[i].to, edges[i].gate), chunk);
      if (r == 0) continue;
      p.after(before[(i + n - 1) % n], now[i]);  // what is passed on has arrived
      p.after(before[i], now[i]);                // and the link is free of the last chunk
    }
    before = now;
  }
}

void ring_pieces(Programmer& p, const std::vector<RingEdge>& edges, int pieces, double bytes) {
  const size_t n = edges.size() - 1;  // nothing comes back to the root
  std::vector<int> before(n, -1), now(n);
  for (int k = 0; k < pieces; ++k) {
    for (size_t i = 0; i < n; ++i) {
      now[i] = p.add(p.path(edges[i].from, edges[i].to, edges[i].gate), bytes / pieces);
      if (i > 0) p.after(now[i - 1], now[i]);
      if (k > 0) p.after(before[i], now[i]);
    }
    before = now;
  }
}

}  // namespace

MessageProgram message_program(const Fabric& fabric, Operation op, const std::vector<Rank>& ranks, double bytes,
                               const CollectiveOptions& options, int chunks) {
  const int n = static_cast<int>(ranks.size());
  Programmer p(fabric, op, ranks, options);
  if (n < 2) return p.program;
  const bool rings = op != Operation::all_to_all && op != Operation::send_recv;
  const bool known =
      options.algorithm == Algorithm::automatic || options.algorithm == (rings ? Algorithm::ring : Algorithm::direct);
  if (!known)
    throw InputError(
        {{"", "", fmt::format("{} as {} has no message level", choice_name(op), choice_name(options.algorithm)),
          rings ? "ring" : "direct"}});
  if (rings) {
    const int channels = channel_count(fabric, ranks);
    for (int c = 0; c < channels; ++c) {
      const auto edges = ring_edges(fabric, ranks, c, op == Operation::broadcast);
      if (op == Operation::broadcast)
        ring_pieces(p, edges, chunks, bytes / channels);
      else
        ring_rounds(p, edges, (op == Operation::all_reduce ? 2 : 1) * (n - 1), bytes / channels / n);
    }
  } else if (op == Operation::all_to_all) {
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b)
        if (a != b) p.add(p.path(a, b, a), bytes / n);
  } else {
    for (int a = 0; a < (n == 2 ? 1 : n); ++a) p.add(p.path(a, (a + 1) % n, a), bytes);
  }
  return p.program;
}

double run_program(Engine& engine, const MessageProgram& program) {
  std::vector<int> waits;
  for (const Message& m : program.messages) waits.push_back(m.waits_for);
  size_t arrived = 0;
  double last_s = engine.now_s();
  std::function<void(size_t)> start = [&](size_t i) {
    engine.start(program.messages[i].load_class, program.messages[i].bytes, [&, i] {
      ++arrived;
      last_s = engine.now_s();
      for (const int next : program.messages[i].then)
        if (--waits[static_cast<size_t>(next)] == 0) start(static_cast<size_t>(next));
    });
  };
  engine.at(engine.now_s() + program.begin_s, [&] {
    for (size_t i = 0; i < program.messages.size(); ++i)
      if (program.messages[i].waits_for == 0) start(i);
  });
  engine.run();
  if (arrived == program.messages.size()) return last_s;
  std::string names;
  int shown = 0;
  for (size_t i = 0; i < waits.size() && shown < 8; ++i)
    if (waits[i] > 0) {
      names += (shown++ == 0 ? "" : ", ") + program.classes[static_cast<size_t>(program.messages[i].load_class)].name;
    }
  throw SimulationError(
      fmt::format("dead-lock: {} of {} messages arrived; waiting: {}", arrived, program.messages.size(), names));
}

double message_level_s(const Fabric& fabric, Operation op, const std::vector<Rank>& ranks, double bytes,
                       const CollectiveOptions& options, int chunks) {
  MessageProgram program = message_program(fabric, op, ranks, bytes, options, chunks);
  const std::vector<Link> links = engine_links(fabric, program.classes);
  const auto engine = open_engine(links, program.classes);
  return run_program(*engine, program);
}

double load_level_s(const Fabric& fabric, const CollectiveCost& cost) {
  std::vector<LoadClass> classes{cost.load};
  classes.front().name = choice_name(cost.operation);
  const std::vector<Link> links = engine_links(fabric, classes);
  const auto engine = open_engine(links, classes);
  double end_s = 0;
  engine->start(0, cost.bytes, [&] { end_s = engine->now_s(); });
  engine->run();
  return end_s;
}

}  // namespace tw::network
