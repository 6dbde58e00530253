#include "network/message_level.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "network/link_loads.hpp"

namespace tw::network {
namespace {

// Pieces of one flow that may be on their way at a time: one is sent while the next is made ready.
constexpr int kInFlight = 2;

// What is sent as one message: a flow, or all flows of one stream into or out of the switches that reduce.
struct Transfer {
  int load_class = 0, channel = 0;
  double share = 1, earliest_s = 0;
  std::vector<int> from, to;
  int turn_after = -1;  // transfer of the same sender that must have arrived
};

struct Played {
  std::vector<Transfer> transfers;
  std::map<int, std::vector<size_t>> into;  // end point -> transfers
  int rounds = 1;
  bool relays = false;
  std::vector<int> last;  // of the piece in hand: message of each transfer's last round
};

// Members of a clique send to the others in turn, and what is relayed goes in pieces: not in rounds.
int rounds_of(const Stage& stage) {
  const bool in_rounds = !stage.relays && !stage.flows.empty();
  return in_rounds ? std::max(1, static_cast<int>(stage.nvlink + stage.network)) : 1;
}

std::string named_or_usual(const std::string& algorithm, Operation op) {
  if (algorithm != "auto") return algorithm;
  return op == Operation::all_to_all || op == Operation::send_recv ? "direct" : "ring";
}

class Programmer {
 public:
  Programmer(const Group& group, const ProtocolTuning& tuning, int parallel, const NvlinkCost& nvlink, LinkLoads& loads,
             const std::vector<double>& late_s, int most_rounds)
      : fabric_(group.fabric),
        group_(group),
        late_s_(late_s),
        tuning_(tuning),
        parallel_(static_cast<size_t>(parallel)),
        nvlink_(nvlink),
        loads_(loads),
        most_rounds_(most_rounds) {
    program.begin_s = tuning.base.value();
  }

  Played stage(const Stage& stage) {
    Played played;
    played.relays = stage.relays;
    const int rounds = rounds_of(stage);
    played.rounds = std::min(rounds, most_rounds_);
    together_ = static_cast<double>(rounds) / played.rounds;
    std::map<int, std::vector<Flow>> streams;
    for (const Flow& f : stage.flows) {
      if (f.from == kReduction || f.to == kReduction)
        streams[f.channel].push_back(f);
      else
        add(played, {f});
    }
    for (const auto& [channel, flows] : streams) add(played, flows);
    for (const Clique& c : stage.cliques)
      for (size_t a = 0; a < c.members.size(); ++a)
        for (size_t i = 1; i < c.members.size(); ++i) {
          add(played, {{c.members[a], c.members[(a + i) % c.members.size()], c.share}});
          if (parallel_ > 0 && i > parallel_)
            played.transfers.back().turn_after = static_cast<int>(played.transfers.size() - 1 - parallel_);
        }
    return played;
  }

  // One piece of all stages; `before`: the messages of each stage's transfers kInFlight pieces ago, or none.
  void piece(std::vector<Played>& stages, double bytes, const std::vector<std::vector<int>>& before) {
    for (size_t s = 0; s < stages.size(); ++s) {
      Played& now = stages[s];
      std::vector<int> round(now.transfers.size());
      for (int r = 0; r < now.rounds; ++r) {
        for (size_t i = 0; i < round.size(); ++i) round[i] = message(now.transfers[i], bytes / now.rounds);
        for (size_t i = 0; i < round.size(); ++i) {
          const Transfer& t = now.transfers[i];
          if (now.relays || r > 0)  // what is passed on has arrived
            for (const int end : t.from)
              for (const size_t other : feeding(now, end))
                if (now.transfers[other].channel == t.channel) after((now.relays ? round : now.last)[other], round[i]);
          if (r > 0) {
            after(now.last[i], round[i]);  // and the link is free of the last chunk
            continue;
          }
          if (t.turn_after >= 0) after(round[static_cast<size_t>(t.turn_after)], round[i]);
          if (!before.empty()) after(before[s][i], round[i]);
          for (const int end : t.from)
            for (size_t earlier = s; earlier-- > 0;) {
              const std::vector<size_t>& fed = feeding(stages[earlier], end);
              for (const size_t other : fed) after(stages[earlier].last[other], round[i]);
              if (!fed.empty()) break;
            }
        }
        now.last = round;
      }
    }
  }

  MessageProgram program;

 private:
  static const std::vector<size_t>& feeding(const Played& stage, int end) {
    static const std::vector<size_t> none;
    const auto it = stage.into.find(end);
    return it == stage.into.end() ? none : it->second;
  }

  void add(Played& played, const std::vector<Flow>& flows) {
    Transfer t;
    t.share = flows.front().share;
    t.channel = flows.front().channel;
    if (t.share <= 0) return;
    t.load_class = class_of(flows);
    // Streams that are reduced are apart, channel by channel.
    const auto end = [](int e, int channel) { return e == kReduction ? kReduction + channel : e; };
    for (const Flow& f : flows) {
      for (const int e : {f.from, f.to, f.via})
        if (e >= 0 && !late_s_.empty()) t.earliest_s = std::max(t.earliest_s, late_s_[static_cast<size_t>(e)]);
      t.from.push_back(end(f.from, f.channel));
      t.to.push_back(end(f.to, f.channel));
    }
    for (std::vector<int>* ends : {&t.from, &t.to}) {
      std::sort(ends->begin(), ends->end());
      ends->erase(std::unique(ends->begin(), ends->end()), ends->end());
    }
    for (const int e : t.to) played.into[e].push_back(played.transfers.size());
    played.transfers.push_back(std::move(t));
  }

  int class_of(const std::vector<Flow>& flows) {
    const Flow& f = flows.front();
    const auto [it, fresh] = classes_.try_emplace(
        {f.from, f.to, f.via, flows.size() > 1 ? f.channel : -1, static_cast<int>(std::lround(1024 * together_))},
        program.classes.size());
    if (!fresh) return static_cast<int>(it->second);
    FlowPlan plan;
    plan.stages.push_back({flows, {}});
    loads_.add(group_, plan, nvlink_);
    const LinkLoads::Taken taken = loads_.take();
    LoadClass c{end_name(f.from) + " to " + end_name(f.to), taken.uses, tuning_.nvlink.value()};
    if (taken.hops > 0) c.latency_s = tuning_.network.value() + taken.hops * fabric_.hop_latency_s;
    c.latency_s *= together_;
    for (LinkUse& use : c.uses) use.weight /= f.share * tuning_.efficiency;
    program.classes.push_back(std::move(c));
    return static_cast<int>(it->second);
  }

  std::string end_name(int end) const {
    if (end == kReduction) return "the reduction";
    if (end < 0) return fmt::format("NVLink switch {}", -1 - end);
    const Rank& r = group_.ranks[static_cast<size_t>(end)];
    return fmt::format("node-{} GPU {}", r.node, r.gpu);
  }

  int message(const Transfer& t, double bytes) {
    program.messages.push_back({t.load_class, t.share * bytes, 0, {}, t.earliest_s});
    return static_cast<int>(program.messages.size()) - 1;
  }
  void after(int first, int second) {
    program.messages[static_cast<size_t>(first)].then.push_back(second);
    ++program.messages[static_cast<size_t>(second)].waits_for;
  }

  const Fabric& fabric_;
  const Group& group_;
  const std::vector<double>& late_s_;
  const ProtocolTuning& tuning_;
  size_t parallel_;  // messages of a rank on their way at a time; 0: all
  NvlinkCost nvlink_;
  LinkLoads& loads_;
  int most_rounds_;
  double together_ = 1;  // rounds that one message of the stage in hand stands for
  std::map<std::array<int, 5>, size_t> classes_;
};

MessageProgram program_of(const FlowPlan& plan, double bytes, int chunks, Programmer&& p) {
  std::vector<Played> stages;
  for (const Stage& s : plan.stages) stages.push_back(p.stage(s));
  // Rounds are pieces already; what passes several stages, or is passed on, is cut up.
  const int pieces = stages.size() == 1 && !stages.front().relays ? 1 : chunks;
  std::vector<std::vector<std::vector<int>>> sent;  // [piece][stage][transfer]
  for (int k = 0; k < pieces; ++k) {
    p.piece(stages, bytes / pieces,
            k < kInFlight ? std::vector<std::vector<int>>{} : sent[static_cast<size_t>(k - kInFlight)]);
    sent.emplace_back();
    for (const Played& s : stages) sent.back().push_back(s.last);
  }
  return std::move(p.program);
}

}  // namespace

std::vector<MessageProgram> message_programs(const Fabric& fabric, Operation op,
                                             const std::vector<std::vector<Rank>>& ranks, double bytes,
                                             const CollectiveOptions& options, int chunks) {
  if (ranks.front().size() < 2) return std::vector<MessageProgram>(ranks.size());
  std::vector<Group> groups;
  groups.reserve(ranks.size());
  for (const std::vector<Rank>& own : ranks) groups.emplace_back(fabric, own);
  CollectiveOptions named = options;
  named.algorithm = named_or_usual(named.algorithm, op);
  if (named.protocol == Protocol::automatic) named.protocol = Protocol::simple;
  Collectives collectives(fabric, named);
  std::vector<FlowPlan> plans;
  for (const Group& group : groups) plans.push_back(collectives.named_algorithm({&group}, op).plan(group, op));
  // Adaptive routing sees all that is sent together, as where it is one load.
  LinkLoads loads(fabric, collectives.router(), false, named.seed);
  SplitTable splits;
  if (fabric.routing == RoutingPolicy::adaptive && collectives.router().tree() == nullptr) {
    for (size_t i = 0; i < groups.size(); ++i)
      loads.add(groups[i], plans[i], collectives.nvlink_cost(op, groups[i].n()));
    loads.take(&splits);
    loads.split_by(splits);
  }
  std::vector<MessageProgram> programs;
  for (size_t i = 0; i < groups.size(); ++i) {
    const ProtocolTuning& tuning = collectives.tuning(plans[i].tuning, named.protocol);
    programs.push_back(program_of(plans[i], bytes, chunks,
                                  {groups[i], tuning, collectives.tuning(plans[i].tuning).parallel,
                                   collectives.nvlink_cost(op, groups[i].n()), loads, options.late_s, chunks}));
  }
  return programs;
}

MessageProgram message_program(const Fabric& fabric, Operation op, const std::vector<Rank>& ranks, double bytes,
                               const CollectiveOptions& options, int chunks) {
  return std::move(message_programs(fabric, op, {ranks}, bytes, options, chunks).front());
}

std::string joined_rounds(const Fabric& fabric, const ClassPart& part, int chunks) {
  const std::string name = named_or_usual(part.algorithm, part.operation);
  int most = 0;
  FlowPlan plan;
  if (!part.groups.empty() && part.groups.front().size() > 1)
    for (const CollectiveAlgorithm& a : algorithms())
      if (a.name == name) plan = a.plan(Group(fabric, part.groups.front()), part.operation);
  for (const Stage& s : plan.stages) most = std::max(most, rounds_of(s));
  if (most <= chunks) return "";
  return fmt::format("level 3 plays the {} rounds of {} {} over {} ranks as {}, with the latency of all", most, name,
                     choice_name(part.operation), part.groups.front().size(), chunks);
}

double run_program(Engine& engine, const MessageProgram& program) {
  std::vector<int> waits;
  for (const Message& m : program.messages) waits.push_back(m.waits_for);
  size_t arrived = 0;
  double last_s = engine.now_s();
  const double begin_s = engine.now_s() + program.begin_s;
  std::function<void(size_t)> start = [&](size_t i) {
    const double due_s = begin_s + program.messages[i].earliest_s;
    if (due_s > engine.now_s()) return engine.at(due_s, [&, i] { start(i); });
    engine.start(program.messages[i].load_class, program.messages[i].bytes, [&, i] {
      ++arrived;
      last_s = engine.now_s();
      for (const int next : program.messages[i].then)
        if (--waits[static_cast<size_t>(next)] == 0) start(static_cast<size_t>(next));
    });
  };
  engine.at(begin_s, [&] {
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
  engine->at(cost.late_s, [&] { engine->start(0, cost.bytes, [&] { end_s = engine->now_s(); }); });
  engine->run();
  return end_s;
}

}  // namespace tw::network
