// The one file that includes SimGrid. It is used as a clock and for the max-min sharing of contended links: no actors,
// no Exec, no plugins. One Comm is one whole collective over all links it loads.
//
// Settings that make sharing exact (each is needed): CM02; no cross-traffic; TCP-gamma 0 (else a window limit of
// 4 MiB / 2 latency caps every flow); the same route latency for every class, because SimGrid shares in proportion to
// 1 / latency, with the real latency put in by the latency-factor callback.
#include <fmt/format.h>
#include <xbt/log.h>

#include <array>
#include <cmath>
#include <csignal>
#include <deque>
#include <map>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include "core/error.hpp"
#include "network/calendar.hpp"
#include "network/engine.hpp"
#include "network/link_merge.hpp"

namespace tw::network {
namespace {

namespace sg = simgrid::s4u;

// SimGrid counts payload in whole bytes: count in 1/1024 of a byte, so that fractions do not matter.
constexpr double kPayloadScale = 1024;

// SimGrid's handlers for these signals would end the process with its own exit code.
class KeepSignals {
 public:
  KeepSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &saved_[i]);
  }
  ~KeepSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &saved_[i], nullptr);
  }
  KeepSignals(const KeepSignals&) = delete;
  KeepSignals& operator=(const KeepSignals&) = delete;

 private:
  static constexpr std::array<int, 5> kSignals{SIGINT, SIGSEGV, SIGABRT, SIGTERM, SIGBUS};
  std::array<struct sigaction, kSignals.size()> saved_{};
};

class SimGridEngine final : public Engine {
 public:
  SimGridEngine(const std::vector<Link>& links, const std::vector<LoadClass>& classes)
      : net_(merge_links(links, classes)) {
    for (const LoadClass& c : classes) names_.push_back(c.name);
    open();
    build();
  }
  ~SimGridEngine() override { release(); }
  SimGridEngine(const SimGridEngine&) = delete;
  SimGridEngine& operator=(const SimGridEngine&) = delete;

  double now_s() const override { return sg::Engine::get_clock(); }

  void at(double t_s, std::function<void()> what) override {
    if (!(t_s >= now_s()) || !std::isfinite(t_s))
      throw std::logic_error(fmt::format("an event at {} s, asked for at {} s", t_s, now_s()));
    calendar_.add(t_s, std::move(what));
    if (!firing_ && (armed_ == nullptr || t_s < armed_->get_date())) arm();
  }

  void start(int load_class, double bytes, std::function<void()> done) override {
    const auto k = static_cast<size_t>(load_class);
    const MergedClass& c = net_.classes.at(k);
    if (!(bytes >= 0) || bytes * c.unit * kPayloadScale > 9e18)
      throw std::logic_error(fmt::format("a transfer of {} bytes of class \"{}\"", bytes, names_[k]));
    const double payload = std::round(bytes * c.unit * kPayloadScale);
    if (payload == 0) {  // nothing to move: the latency is all
      at(now_s() + c.latency_s, std::move(done));
      return;
    }
    ++started_;
    ++waiting_[load_class];
    latency_of_next_s_ = c.latency_s;
    if (free_.empty()) free_.push_back(&transfers_.emplace_back());
    Transfer* transfer = free_.back();
    free_.pop_back();
    *transfer = {load_class, false, std::move(done)};
    auto comm = sg::Comm::sendto_init(sources_[k / grid_], sinks_[k % grid_]);
    comm->set_payload_size(static_cast<uint64_t>(payload));
    comm->set_data(transfer);
    comm->add_ref();  // held until the next completion: dropping it inside the callback is a crash
    comm->start();
  }

  void run() override {
    if (dead_) throw SimulationError("the engine cannot go on after an error");
    try {
      engine_->run();
    } catch (...) {
      dead_ = true;
      throw;
    }
    if (!failed_.empty()) {
      dead_ = true;
      throw SimulationError(fmt::format("transfers failed: {}", failed_));
    }
    if (started_ != completed_ || !calendar_.empty()) {
      dead_ = true;
      throw SimulationError(
          fmt::format("the simulation stopped at {} s with {} of {} transfers unfinished; waiting: {}", now_s(),
                      started_ - completed_, started_, waiting_text()));
    }
  }

 private:
  struct Transfer {
    int load_class = 0;
    bool finished = false;
    std::function<void()> done;
  };

  void open() {
    const KeepSignals keep;
    engine_ = std::make_unique<sg::Engine>("trainwatt");
    xbt_log_control_set("root.thres:critical");
    sg::Engine::set_config("network/model:CM02");
    sg::Engine::set_config("network/crosstraffic:0");
    sg::Engine::set_config("network/TCP-gamma:0");
  }

  void build() {
    auto* zone = sg::create_full_zone("fabric");
    zone->get_network_model()->set_lat_factor_cb(
        [this](double, const sg::Host*, const sg::Host*, const std::vector<sg::Link*>&,
               const std::unordered_set<sg::NetZone*>&) { return latency_of_next_s_; });
    // One pair of hosts per class would be quadratic in a full zone; on a square grid of pairs it is not.
    grid_ = static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(std::max<size_t>(1, net_.classes.size())))));
    for (size_t i = 0; i < grid_; ++i) {
      sources_.push_back(zone->create_host(fmt::format("s{}", i), 1e9));
      sinks_.push_back(zone->create_host(fmt::format("d{}", i), 1e9));
    }
    std::vector<sg::Link*> shared;
    for (size_t l = 0; l < net_.capacity.size(); ++l)
      shared.push_back(zone->create_link(fmt::format("l{}", l), net_.capacity[l] * kPayloadScale)->seal());
    for (size_t k = 0; k < net_.classes.size(); ++k) {
      const MergedClass& c = net_.classes[k];
      if (c.unit == 0) continue;
      auto* own = zone->create_link(fmt::format("c{}", k), c.alone_rate * kPayloadScale);
      own->set_latency(1.0);  // the weight in sharing; the callback turns it into the real latency
      own->seal();
      std::vector<sg::LinkInRoute> route{sg::LinkInRoute(own)};
      for (const MergedUse& use : c.shared)
        for (int m = 0; m < use.multiplicity; ++m) route.emplace_back(shared[static_cast<size_t>(use.link)]);
      zone->add_route(sources_[k / grid_]->get_netpoint(), sinks_[k % grid_]->get_netpoint(), nullptr, nullptr, route,
                      false);
    }
    zone->seal();
    sg::Activity::on_completion_cb([this](const sg::Activity& a) { completed(a); });
  }

  void completed(const sg::Activity& activity) {
    auto* transfer = activity.get_data<Transfer>();
    if (transfer == nullptr || transfer->finished) return;  // SimGrid calls twice for a cancelled one
    transfer->finished = true;
    release();
    grave_ = const_cast<sg::Activity*>(&activity);
    ++completed_;
    const auto waiting = waiting_.find(transfer->load_class);
    if (--waiting->second == 0) waiting_.erase(waiting);
    const std::function<void()> done = std::move(transfer->done);
    const auto name = static_cast<size_t>(transfer->load_class);
    if (activity.get_state() != sg::Activity::State::FINISHED) {
      failed_ += (failed_.empty() ? "" : ", ") + names_[name];
      return;
    }
    if (done) done();
  }

  void release() {
    if (grave_ == nullptr) return;
    free_.push_back(grave_->get_data<Transfer>());
    grave_->unref();
    grave_ = nullptr;
  }

  void arm() {
    if (armed_ != nullptr) armed_->remove();
    armed_ = calendar_.empty() ? nullptr : simgrid::kernel::timer::Timer::set(calendar_.next_s(), [this] { fire(); });
  }

  void fire() {
    armed_ = nullptr;
    firing_ = true;
    while (!calendar_.empty() && calendar_.next_s() <= now_s()) calendar_.take()();
    firing_ = false;
    arm();
  }

  std::string waiting_text() const {
    std::string text;
    int shown = 0;
    for (const auto& [k, count] : waiting_) {
      if (shown++ == 8) return text + ", ...";
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", names_[static_cast<size_t>(k)], count);
    }
    return text;
  }

  MergedNetwork net_;
  std::vector<std::string> names_;
  std::unique_ptr<sg::Engine> engine_;
  std::vector<sg::Host*> sources_, sinks_;
  size_t grid_ = 1;
  double latency_of_next_s_ = 0;
  Calendar calendar_;
  simgrid::kernel::timer::Timer* armed_ = nullptr;
  bool firing_ = false;
  bool dead_ = false;
  uint64_t started_ = 0, completed_ = 0;
  std::map<int, int> waiting_;  // class -> transfers under way
  std::string failed_;
  std::deque<Transfer> transfers_;  // slots: a deque does not move them
  std::vector<Transfer*> free_;
  sg::Activity* grave_ = nullptr;
};

}  // namespace
}  // namespace tw::network

extern "C" void trainwatt_open_engine(const std::vector<tw::network::Link>& links,
                                      const std::vector<tw::network::LoadClass>& classes,
                                      std::unique_ptr<tw::network::Engine>& out) {
  static bool opened = false;
  // A second engine in one process works only by luck: clock, signals and settings of the first live on.
  if (opened) throw tw::SimulationError("a process holds one engine only; run each scenario in a process of its own");
  opened = true;
  out = std::make_unique<tw::network::SimGridEngine>(links, classes);
}
