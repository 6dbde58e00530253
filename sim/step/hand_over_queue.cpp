#include "step/hand_over_queue.hpp"

#include <map>
#include <tuple>

#include "core/error.hpp"

namespace tw {
namespace {

using Key = std::tuple<int, bool, int, int>;  // stage, backward, slot, micro-batch

// Whether a visit takes an input and gives an output to another one.
bool passes(const Visit& v) {
  return v.part != Part::weight;
}

class Lowering {
 public:
  Lowering(const ChunkPlacement& placement, const std::vector<std::vector<Visit>>& visits, int micro_batches)
      : placement_(placement), visits_(visits), micro_batches_(micro_batches) {
    out_.batches.resize(visits.size());
    out_.needs.resize(visits.size());
    for (size_t s = 0; s < visits.size(); ++s) {
      out_.needs[s].assign(visits[s].size(), 0);
      for (size_t k = 0; k < visits[s].size(); ++k)
        if (passes(visits[s][k])) number_[key(static_cast<int>(s), visits[s][k])] = k;
    }
  }

  // Every stage in turn takes its next visit whose input is on its way; its send goes behind the visit, the receive
  // behind whatever the receiver has come to by then.
  HandOverQueues in_order() {
    std::vector<size_t> done(visits_.size(), 0);
    std::map<Key, bool> ready;
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t s = 0; s < visits_.size(); ++s) {
        size_t count = 1;
        while (done[s] + count <= visits_[s].size() && visits_[s][done[s] + count - 1].joined) ++count;
        if (done[s] + count > visits_[s].size()) continue;
        bool all = true;
        for (size_t k = done[s]; k < done[s] + count; ++k)
          all = all && (!passes(visits_[s][k]) || starts(static_cast<int>(s), visits_[s][k]) ||
                        ready[key(static_cast<int>(s), visits_[s][k])]);
        if (!all) continue;
        done[s] += count;
        progress = true;
        for (size_t k = done[s] - count; k < done[s]; ++k) {
          int to = 0;
          Visit next;
          if (!passes(visits_[s][k]) ||
              !next_visit(placement_, micro_batches_, static_cast<int>(s), visits_[s][k], to, next))
            continue;
          ready[key(to, next)] = true;
          if (to == static_cast<int>(s)) continue;
          const int t = transfer(static_cast<int>(s), visits_[s][k], to, next);
          out_.batches[s].push_back({done[s], {{t, true}}});
          auto& receiver = out_.batches[static_cast<size_t>(to)];
          receiver.push_back({done[static_cast<size_t>(to)], {{t, false}}});
          out_.needs[static_cast<size_t>(to)][out_.transfers.back().visit] = receiver.size();
        }
      }
    }
    for (size_t s = 0; s < visits_.size(); ++s)
      if (done[s] < visits_[s].size()) throw SimulationError("a pipeline schedule waits for itself");
    return std::move(out_);
  }

  HandOverQueues in_pairs() {
    std::map<Key, int> coming;  // by the visit that waits for it
    for (size_t s = 0; s < visits_.size(); ++s)
      for (const Visit& v : visits_[s]) {
        int to = 0;
        Visit next;
        if (passes(v) && next_visit(placement_, micro_batches_, static_cast<int>(s), v, to, next) &&
            to != static_cast<int>(s))
          coming[key(to, next)] = transfer(static_cast<int>(s), v, to, next);
      }
    for (size_t s = 0; s < visits_.size(); ++s) {
      const auto& list = visits_[s];
      for (size_t k = 0; k <= list.size(); ++k) {
        std::vector<HandOver> send, receive;
        if (k > 0) {
          int to = 0;
          Visit next;
          if (passes(list[k - 1]) &&
              next_visit(placement_, micro_batches_, static_cast<int>(s), list[k - 1], to, next) &&
              to != static_cast<int>(s))
            send.push_back({coming.at(key(to, next)), true});
        }
        if (k < list.size())
          if (const auto t = coming.find(key(static_cast<int>(s), list[k])); t != coming.end())
            receive.push_back({t->second, false});
        const bool pair = k > 0 && k < list.size() && list[k - 1].backward != list[k].backward;
        auto& queue = out_.batches[s];
        if (pair) send.insert(send.end(), receive.begin(), receive.end()), receive.clear();
        if (!send.empty()) queue.push_back({k, send});
        if (!receive.empty()) queue.push_back({k, receive});
        const bool waits = !receive.empty() || (pair && !send.empty());
        if (k < list.size() && waits) out_.needs[s][k] = queue.size();
      }
    }
    return std::move(out_);
  }

 private:
  static Key key(int stage, const Visit& v) { return {stage, v.backward, v.chunk, v.micro_batch}; }
  // The first forward of a micro-batch waits for nobody.
  bool starts(int stage, const Visit& v) const {
    const Place& first = placement_.of(v.micro_batch, micro_batches_).front();
    return !v.backward && first.stage == stage && first.slot == v.chunk;
  }
  int transfer(int from, const Visit& sent, int to, const Visit& next) {
    out_.transfers.push_back({from, to, number_.at(key(to, next)), sent});
    return static_cast<int>(out_.transfers.size()) - 1;
  }

  const ChunkPlacement& placement_;
  const std::vector<std::vector<Visit>>& visits_;
  int micro_batches_;
  std::map<Key, size_t> number_;
  HandOverQueues out_;
};

}  // namespace

bool next_visit(const ChunkPlacement& placement, int micro_batches, int stage, const Visit& v, int& next_stage,
                Visit& next) {
  const auto& way = placement.of(v.micro_batch, micro_batches);
  size_t at = 0;
  while (at < way.size() && !(way[at].stage == stage && way[at].slot == v.chunk)) ++at;
  next = v;
  next.part = Part::whole;
  next.joined = false;
  next_stage = stage;
  if (!v.backward && at + 1 == way.size()) {
    next.backward = true;
    return true;
  }
  if (v.backward && at == 0) return false;
  const Place& to = way[v.backward ? at - 1 : at + 1];
  next_stage = to.stage;
  next.chunk = to.slot;
  return true;
}

HandOverQueues hand_over_queues(const ChunkPlacement& placement, const std::vector<std::vector<Visit>>& visits,
                                int micro_batches, bool paired) {
  Lowering lowering(placement, visits, micro_batches);
  return paired ? lowering.in_pairs() : lowering.in_order();
}

}  // namespace tw
