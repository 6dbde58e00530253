// Max-min sharing on a calendar of our own: the same rates as SimGrid's (tests/network/fluid_engine_test.cpp), at the
// price of an event where nobody meets. Rates change only where a transfer begins or ends, and only for those that
// share a link with it, directly or through others.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/error.hpp"
#include "network/calendar.hpp"
#include "network/engine.hpp"
#include "network/link_merge.hpp"

namespace tw::network {
namespace {

class FluidEngine final : public Engine {
 public:
  FluidEngine(const std::vector<Link>& links, const std::vector<LoadClass>& classes)
      : net_(merge_links(links, classes)) {
    // Transfers of one class share what it has alone, too.
    for (size_t k = 0; k < net_.classes.size(); ++k) {
      uses_.push_back(net_.classes[k].shared);
      uses_.back().push_back({static_cast<int>(net_.capacity.size() + k), 1});
    }
    for (const MergedClass& c : net_.classes) net_.capacity.push_back(c.alone_rate);
    links_.resize(net_.capacity.size());
  }

  double now_s() const override { return now_s_; }
  void at(double t_s, std::function<void()> what) override {
    if (!(t_s >= now_s_) || !std::isfinite(t_s)) throw std::logic_error("an event before now");
    calendar_.add(t_s, std::move(what));
  }
  void start(int load_class, double bytes, std::function<void()> done) override {
    if (!(bytes >= 0) || !std::isfinite(bytes)) throw std::logic_error("a transfer of a negative size");
    const auto k = static_cast<size_t>(load_class);
    const MergedClass& c = net_.classes.at(k);
    if (c.unit <= 0 || bytes == 0) return at(now_s_ + c.latency_s, std::move(done));
    const size_t slot = free_.empty() ? flows_.size() : free_.back();
    if (free_.empty())
      flows_.emplace_back();
    else
      free_.pop_back();
    Flow& flow = flows_[slot];
    flow = {k, bytes * c.unit, 0, 0, flow.version + 1, 0, false, std::move(done)};
    ++active_;
    if (c.latency_s <= 0) return join(slot);
    at(now_s_ + c.latency_s, [this, slot] { join(slot); });
  }
  void run() override {
    while (!calendar_.empty()) {
      // Rates matter only when time goes on: all that begins and ends at one moment is settled at once.
      if (calendar_.next_s() > now_s_ && !changed_.empty()) {
        settle_changed();
        continue;
      }
      now_s_ = calendar_.next_s();
      calendar_.take()();
      if (calendar_.empty()) settle_changed();
    }
    if (active_ != 0) throw SimulationError("transfers never finished");
  }

 private:
  struct Flow {
    size_t load_class = 0;
    double left = 0, rate = 0, since_s = 0;
    unsigned version = 0;  // of its expected end
    unsigned seen = 0;
    bool joined = false;
    std::function<void()> done;
  };
  struct SharedLink {
    std::vector<size_t> users;  // flows
    double demand = 0;          // of its users, if nothing else held them
    unsigned seen = 0;
    double left = 0, wanted = 0;  // while rates are found: capacity, and uses that have no rate yet
  };

  double alone_rate(size_t slot) const { return net_.classes[flows_[slot].load_class].alone_rate; }
  SharedLink& link(const MergedUse& use) { return links_[static_cast<size_t>(use.link)]; }
  // A link that holds its users at their own rates binds nobody.
  bool full(const MergedUse& use) {
    return link(use).demand > net_.capacity[static_cast<size_t>(use.link)] * (1 + 1e-9);
  }

  void join(size_t slot) {
    Flow& flow = flows_[slot];
    flow.since_s = now_s_;
    flow.joined = true;
    for (const MergedUse& use : uses_[flow.load_class]) {
      link(use).users.push_back(slot);
      link(use).demand += use.multiplicity * alone_rate(slot);
    }
    changed_.push_back(slot);
  }

  void leave(size_t slot, unsigned version) {
    Flow& flow = flows_[slot];
    if (flow.version != version) return;
    for (const MergedUse& use : uses_[flow.load_class]) {
      if (full(use)) changed_.insert(changed_.end(), link(use).users.begin(), link(use).users.end());
      std::erase(link(use).users, slot);
      link(use).demand = link(use).users.empty() ? 0 : link(use).demand - use.multiplicity * alone_rate(slot);
    }
    const std::function<void()> done = std::move(flow.done);
    ++flow.version;
    flow.joined = false;
    free_.push_back(slot);
    --active_;
    if (done) done();
  }

  // All transfers that share a full link with a changed one, directly or through others, group by group.
  void settle_changed() {
    std::vector<size_t> changed;
    changed.swap(changed_);
    ++mark_;
    for (const size_t first : changed) {
      if (!flows_[first].joined || flows_[first].seen == mark_) continue;
      flows_[first].seen = mark_;
      std::vector<size_t> found{first};
      for (size_t i = 0; i < found.size(); ++i)
        for (const MergedUse& use : uses_[flows_[found[i]].load_class]) {
          SharedLink& shared = link(use);
          if (shared.seen == mark_ || !full(use)) continue;
          shared.seen = mark_;
          for (const size_t f : shared.users)
            if (flows_[f].seen != mark_) flows_[f].seen = mark_, found.push_back(f);
        }
      settle(found);
    }
  }

  // Progressive filling: the tightest link, or its own rate, fixes a transfer's rate, and so on with what is left.
  void settle(const std::vector<size_t>& flows) {
    if (flows.size() == 1) return set_rate(flows[0], alone_rate(flows[0]));
    std::vector<size_t> in_sight;
    for (const size_t f : flows)
      for (const MergedUse& use : uses_[flows_[f].load_class]) {
        if (!full(use)) continue;
        SharedLink& shared = link(use);
        if (shared.wanted == 0) {
          shared.left = net_.capacity[static_cast<size_t>(use.link)];
          in_sight.push_back(static_cast<size_t>(use.link));
        }
        shared.wanted += use.multiplicity;
      }
    const auto fair = [](const SharedLink& l) {
      return l.wanted > 0 ? std::max(0.0, l.left) / l.wanted : std::numeric_limits<double>::infinity();
    };
    std::vector<size_t> open = flows;
    while (!open.empty()) {
      double least = std::numeric_limits<double>::infinity();
      for (const size_t l : in_sight) least = std::min(least, fair(links_[l]));
      for (const size_t f : open) least = std::min(least, alone_rate(f));
      const double edge = least * (1 + 1e-12);
      std::vector<size_t> bound, rest;
      for (const size_t f : open) {
        bool tight = alone_rate(f) <= edge;
        for (const MergedUse& use : uses_[flows_[f].load_class])
          tight = tight || (full(use) && fair(link(use)) <= edge);
        (tight ? bound : rest).push_back(f);
      }
      for (const size_t f : bound) {
        for (const MergedUse& use : uses_[flows_[f].load_class]) {
          if (!full(use)) continue;
          link(use).left -= least * use.multiplicity;
          link(use).wanted -= use.multiplicity;
        }
        set_rate(f, least);
      }
      open = std::move(rest);
    }
  }

  void set_rate(size_t slot, double rate) {
    Flow& flow = flows_[slot];
    if (rate == flow.rate) return;
    flow.left = std::max(0.0, flow.left - flow.rate * (now_s_ - flow.since_s));
    flow.since_s = now_s_;
    flow.rate = rate;
    // Two words: what a std::function holds without an allocation.
    const uint64_t key = static_cast<uint64_t>(slot) << 32U | ++flow.version;
    at(now_s_ + flow.left / rate,
       [this, key] { leave(static_cast<size_t>(key >> 32U), static_cast<unsigned>(key & 0xffffffffU)); });
  }

  MergedNetwork net_;                         // its capacities, then those of each class alone
  std::vector<std::vector<MergedUse>> uses_;  // [class]
  std::vector<SharedLink> links_;
  Calendar calendar_;
  double now_s_ = 0;
  std::vector<Flow> flows_;
  std::vector<size_t> free_;
  std::vector<size_t> changed_;  // transfers whose rates may not hold any more
  unsigned mark_ = 0;
  size_t active_ = 0;
};

}  // namespace

std::unique_ptr<Engine> fluid_engine(const std::vector<Link>& links, const std::vector<LoadClass>& classes) {
  return std::make_unique<FluidEngine>(links, classes);
}

}  // namespace tw::network
