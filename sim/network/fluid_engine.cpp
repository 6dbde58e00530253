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
    flow = {k, bytes * c.unit, 0, 0, flow.version + 1, 0, std::move(done)};
    ++active_;
    if (c.latency_s <= 0) return join(slot);
    at(now_s_ + c.latency_s, [this, slot] { join(slot); });
  }
  void run() override {
    while (!calendar_.empty()) {
      now_s_ = calendar_.next_s();
      calendar_.take()();
    }
    if (active_ != 0) throw SimulationError("transfers never finished");
  }

 private:
  struct Flow {
    size_t load_class = 0;
    double left = 0, rate = 0, since_s = 0;
    unsigned version = 0;  // of its expected end
    unsigned seen = 0;
    std::function<void()> done;
  };
  struct SharedLink {
    std::vector<size_t> users;  // flows
    unsigned seen = 0;
    double left = 0, wanted = 0;  // while rates are found: capacity, and uses that have no rate yet
  };

  void join(size_t slot) {
    flows_[slot].since_s = now_s_;
    for (const MergedUse& use : uses_[flows_[slot].load_class]) link(use).users.push_back(slot);
    settle(neighbours(slot));
  }

  void leave(size_t slot, unsigned version) {
    Flow& flow = flows_[slot];
    if (flow.version != version) return;
    std::vector<size_t> others = neighbours(slot);
    others.erase(others.begin());
    for (const MergedUse& use : uses_[flow.load_class]) std::erase(link(use).users, slot);
    const std::function<void()> done = std::move(flow.done);
    ++flow.version;
    free_.push_back(slot);
    --active_;
    settle(others);
    if (done) done();
  }

  SharedLink& link(const MergedUse& use) { return links_[static_cast<size_t>(use.link)]; }

  // All transfers that share a link with it, directly or through others; itself first.
  std::vector<size_t> neighbours(size_t slot) {
    ++mark_;
    flows_[slot].seen = mark_;
    std::vector<size_t> found{slot};
    for (size_t i = 0; i < found.size(); ++i)
      for (const MergedUse& use : uses_[flows_[found[i]].load_class]) {
        SharedLink& shared = link(use);
        if (shared.seen == mark_) continue;
        shared.seen = mark_;
        for (const size_t f : shared.users)
          if (flows_[f].seen != mark_) flows_[f].seen = mark_, found.push_back(f);
      }
    return found;
  }

  // Progressive filling: the tightest link fixes the rate of its transfers, and so on with what is left.
  void settle(const std::vector<size_t>& flows) {
    if (flows.size() == 1) return set_rate(flows[0], net_.classes[flows_[flows[0]].load_class].alone_rate);
    ++mark_;
    std::vector<size_t> in_sight;
    for (const size_t f : flows)
      for (const MergedUse& use : uses_[flows_[f].load_class]) {
        SharedLink& shared = link(use);
        if (shared.seen != mark_) {
          shared.seen = mark_;
          shared.left = net_.capacity[static_cast<size_t>(use.link)];
          shared.wanted = 0;
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
      const double edge = least * (1 + 1e-12);
      std::vector<size_t> bound, rest;
      for (const size_t f : open) {
        bool tight = false;
        for (const MergedUse& use : uses_[flows_[f].load_class]) tight = tight || fair(link(use)) <= edge;
        (tight ? bound : rest).push_back(f);
      }
      for (const size_t f : bound) {
        for (const MergedUse& use : uses_[flows_[f].load_class]) {
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
    const unsigned version = ++flow.version;
    at(now_s_ + flow.left / rate, [this, slot, version] { leave(slot, version); });
  }

  MergedNetwork net_;  // its capacities, then those of each class alone
  std::vector<std::vector<MergedUse>> uses_;  // [class]
  std::vector<SharedLink> links_;
  Calendar calendar_;
  double now_s_ = 0;
  std::vector<Flow> flows_;
  std::vector<size_t> free_;
  unsigned mark_ = 0;
  size_t active_ = 0;
};

}  // namespace

std::unique_ptr<Engine> fluid_engine(const std::vector<Link>& links, const std::vector<LoadClass>& classes) {
  return std::make_unique<FluidEngine>(links, classes);
}

}  // namespace tw::network
