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
      : net_(merge_links(links, classes)), users_(net_.capacity.size()), seen_(net_.capacity.size(), 0) {}

  double now_s() const override { return now_s_; }
  void at(double t_s, std::function<void()> what) override {
    if (!(t_s >= now_s_) || !std::isfinite(t_s)) throw std::logic_error("an event before now");
    calendar_.add(t_s, std::move(what));
  }
  void start(int load_class, double bytes, std::function<void()> done) override {
    if (!(bytes >= 0) || !std::isfinite(bytes)) throw std::logic_error("a transfer of a negative size");
    const MergedClass& c = net_.classes.at(static_cast<size_t>(load_class));
    if (c.unit <= 0 || bytes == 0) return at(now_s_ + c.latency_s, std::move(done));
    if (c.shared.empty()) return at(now_s_ + c.latency_s + bytes * c.unit / c.alone_rate, std::move(done));
    size_t slot = free_.empty() ? flows_.size() : free_.back();
    if (free_.empty())
      flows_.emplace_back();
    else
      free_.pop_back();
    flows_[slot] = {&c, bytes * c.unit, 0, 0, flows_[slot].version + 1, std::move(done)};
    ++active_;
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
    const MergedClass* of = nullptr;
    double left = 0, rate = 0, since_s = 0;
    unsigned version = 0;  // of its expected end
    std::function<void()> done;
  };

  void join(size_t slot) {
    flows_[slot].since_s = now_s_;
    for (const MergedUse& use : flows_[slot].of->shared) users_[static_cast<size_t>(use.link)].push_back(slot);
    share(slot);
  }

  void leave(size_t slot, unsigned version) {
    Flow& flow = flows_[slot];
    if (flow.version != version) return;
    const std::vector<size_t> others = neighbours(slot);
    for (const MergedUse& use : flow.of->shared) std::erase(users_[static_cast<size_t>(use.link)], slot);
    const std::function<void()> done = std::move(flow.done);
    ++flow.version;
    free_.push_back(slot);
    --active_;
    std::vector<size_t> rest;
    for (const size_t f : others)
      if (f != slot) rest.push_back(f);
    settle(rest);
    if (done) done();
  }

  void share(size_t slot) { settle(neighbours(slot)); }

  // All transfers that share a link with it, directly or through others, itself included.
  std::vector<size_t> neighbours(size_t slot) {
    ++mark_;
    std::vector<size_t> found{slot};
    for (size_t i = 0; i < found.size(); ++i)
      for (const MergedUse& use : flows_[found[i]].of->shared) {
        const auto link = static_cast<size_t>(use.link);
        if (seen_[link] == mark_) continue;
        seen_[link] = mark_;
        for (const size_t f : users_[link])
          if (std::find(found.begin(), found.end(), f) == found.end()) found.push_back(f);
      }
    return found;
  }

  // Progressive filling: the slowest constraint fixes the rate of its transfers, and so on with what is left.
  void settle(std::vector<size_t> flows) {
    std::vector<double> rates(flows.size(), -1);
    std::vector<std::pair<size_t, double>> left;  // capacity of each link in sight
    const auto capacity_of = [&](size_t link) -> double& {
      for (auto& [l, c] : left)
        if (l == link) return c;
      left.emplace_back(link, net_.capacity[link]);
      return left.back().second;
    };
    if (flows.size() == 1) {
      set_rate(flows[0], flows_[flows[0]].of->alone_rate);
      return;
    }
    for (size_t fixed = 0; fixed < flows.size();) {
      double least = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < flows.size(); ++i) {
        if (rates[i] >= 0) continue;
        const MergedClass& c = *flows_[flows[i]].of;
        least = std::min(least, c.alone_rate);
        for (const MergedUse& use : c.shared) least = std::min(least, fair(flows, rates, use.link, capacity_of));
      }
      const double edge = least * (1 + 1e-12);
      std::vector<size_t> now;
      for (size_t i = 0; i < flows.size(); ++i) {
        if (rates[i] >= 0) continue;
        const MergedClass& c = *flows_[flows[i]].of;
        bool bound = c.alone_rate <= edge;
        for (const MergedUse& use : c.shared) bound = bound || fair(flows, rates, use.link, capacity_of) <= edge;
        if (bound) now.push_back(i);
      }
      for (const size_t i : now) {
        rates[i] = least;
        ++fixed;
        for (const MergedUse& use : flows_[flows[i]].of->shared)
          capacity_of(static_cast<size_t>(use.link)) -= least * use.multiplicity;
      }
    }
    for (size_t i = 0; i < flows.size(); ++i) set_rate(flows[i], rates[i]);
  }

  template <class Capacity>
  double fair(const std::vector<size_t>& flows, const std::vector<double>& rates, int link, Capacity& capacity_of) {
    double users = 0;
    for (size_t i = 0; i < flows.size(); ++i)
      if (rates[i] < 0)
        for (const MergedUse& use : flows_[flows[i]].of->shared)
          if (use.link == link) users += use.multiplicity;
    return users > 0 ? std::max(0.0, capacity_of(static_cast<size_t>(link))) / users
                     : std::numeric_limits<double>::infinity();
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

  MergedNetwork net_;
  Calendar calendar_;
  double now_s_ = 0;
  std::vector<Flow> flows_;
  std::vector<size_t> free_;
  std::vector<std::vector<size_t>> users_;  // [link]
  std::vector<unsigned> seen_;
  unsigned mark_ = 0;
  size_t active_ = 0;
};

}  // namespace

std::unique_ptr<Engine> fluid_engine(const std::vector<Link>& links, const std::vector<LoadClass>& classes) {
  return std::make_unique<FluidEngine>(links, classes);
}

}  // namespace tw::network
