#include "power/failure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "power/bus.hpp"
#include "power/stage.hpp"

namespace tw {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kHair = 1e-9;  // a load at a rating is not beyond it

double end_s(const PowerFailure& f) {
  return f.lasts ? f.at.value() + f.lasts->value() : kNever;
}

int rectifiers_of(const PowerDelivery& delivery, const PowerFailure& f) {
  return std::min(bus_rectifiers(delivery),
                  f.count * (f.part == FailedPart::shelf ? delivery.rectifiers_per_shelf : 1));
}

[[noreturn]] void refuse(const char* pointer, std::string what, std::string allowed) {
  throw InputError({{"power failure", pointer, std::move(what), std::move(allowed)}});
}

}  // namespace

struct Supply::Bus {
  int bus = 0;                // of the cluster
  std::vector<size_t> nodes;  // positions in the job
  int on = 0;                 // rectifiers that work
  int cut = 0;                // feeds and units above that are out
  std::optional<BatteryShelf> battery;
  size_t cause = 0;  // the failure that hit it last
  double load_w = 0, supply_w = 0;
  double hold_w = 0;  // limit of each board; 0: its own
  bool dark = false;
};

// A unit of a stage above the shelves.
struct Supply::Unit {
  size_t stage = 0;
  int number = 0;
  std::vector<size_t> buses;  // positions in buses_
  Converter breaker;
  int failed = 0;  // modules, or sides
  size_t cause = 0;
  double load_w = 0;
  bool out = false;
  std::vector<std::pair<double, double>> spans;  // in which it was out
};

// What became of one failure.
struct Supply::Story {
  bool begun = false, ended = false, dark = false, stopped = false;
  double at_s = 0, limit_w = 0, lost_s = 0;
  std::vector<int> nodes;  // of the cluster
};

Supply::~Supply() = default;
Supply::Supply(Supply&&) noexcept = default;

Supply::Supply(const Cluster& cluster, std::vector<int> nodes, size_t training, std::vector<PowerFailure> failures)
    : cluster_(cluster), nodes_(std::move(nodes)), training_(training), failures_(std::move(failures)) {
  if (failures_.empty()) return;
  std::stable_sort(failures_.begin(), failures_.end(),
                   [](const PowerFailure& a, const PowerFailure& b) { return a.at < b.at; });
  stories_.resize(failures_.size());
  node_w_.resize(nodes_.size());
  limit_w_.resize(nodes_.size());
  const PowerDelivery& delivery = cluster.power_delivery;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const int bus = bus_of(cluster, nodes_[i]);
    auto found = std::find_if(buses_.begin(), buses_.end(), [&](const Bus& b) { return b.bus == bus; });
    if (found == buses_.end()) {
      found = buses_.insert(found, Bus{});
      found->bus = bus, found->on = bus_rectifiers(delivery);
      if (delivery.battery)
        found->battery.emplace("battery", battery_of_bus(*delivery.battery, bus_rating_w(delivery)));
    }
    found->nodes.push_back(i);
  }
  int below = 1;
  std::vector<std::string> kinds;
  for (size_t s = 0; s < delivery.upstream.size(); ++s) {
    const PowerStage& stage = delivery.upstream[s];
    below *= stage.feeds;
    kinds.push_back(stage.kind);
    for (size_t b = 0; b < buses_.size(); ++b) {
      const int number = buses_[b].bus / below;
      auto found =
          std::find_if(units_.begin(), units_.end(), [&](const Unit& u) { return u.stage == s && u.number == number; });
      if (found == units_.end())
        found = units_.insert(
            found,
            Unit{s, number, {}, Converter(stage.kind, stage_law(stage), stage.rating.value()), 0, 0, 0, false, {}});
      found->buses.push_back(b);
    }
  }
  for (const PowerFailure& f : failures_) {
    if (f.part == FailedPart::feed && !(f.lasts && f.lasts->value() > 0))
      refuse("/lasts", "an outage of the feed has no length", "such as \"lasts\": \"10 s\"");
    if (f.part == FailedPart::stage) {
      if (std::find(kinds.begin(), kinds.end(), f.stage) == kinds.end())
        refuse("/stage", fmt::format("\"{}\" is no stage of {}", f.stage, cluster.name),
               kinds.empty() ? "the cluster declares none" : fmt::format("stages: {}", fmt::join(kinds, ", ")));
      if (std::none_of(units_.begin(), units_.end(),
                       [&](const Unit& u) { return u.number == f.unit && delivery.upstream[u.stage].kind == f.stage; }))
        refuse("/unit", fmt::format("{} {} feeds no node of the job", f.stage, f.unit), "name a unit that does");
    } else if (f.part != FailedPart::feed &&
               std::none_of(buses_.begin(), buses_.end(), [&](const Bus& b) { return b.bus == f.unit; })) {
      refuse("/unit", fmt::format("bus {} feeds no node of the job", f.unit), "name the bus of a node that runs");
    }
  }
}

double Supply::rating_w(const Bus& bus) const {
  return bus.cut > 0 ? 0 : std::max(0, bus.on) * cluster_.power_delivery.rectifier.rating.value();
}

// A limit for the boards of a bus with which it fits what is left, whatever they do; 0: none.
double Supply::hold_w(const Bus& bus) const {
  const NodePower& profile = cluster_.node.power;
  double left_w = (1 - 1e-9) * rating_w(bus), held = 0;
  for (const size_t i : bus.nodes) i < training_ ? held += 1 : left_w -= node_w_[i];
  if (held == 0 || failures_[bus.cause].policy == OverloadPolicy::trip) return 0;
  const double others_w =
      profile.host_base.value() + profile.nvswitch_load.value() + profile.nic_load.value() + profile.fan_full.value();
  const double board_w =
      (left_w / held - others_w) / cluster_.node.gpus / (1 + profile.conversion_loss) / (1 + 3 * profile.spread);
  const GpuPower& gpu = cluster_.node.accelerator.power;
  const double limit_w = board_w / gpu.held_share;
  const double least_w =
      std::max({gpu.spin.value(), gpu.context.value(), profile.gap_power.value_or(gpu.spin).value()});
  return limit_w > least_w * 1.05 ? limit_w : 0;
}

void Supply::tell(const Bus& bus) {
  teller_ = bus.cause;
  Story& story = stories_[bus.cause];
  if (story.nodes.empty()) story.at_s = now_s_;
  for (const size_t i : bus.nodes) story.nodes.push_back(nodes_[i]);
  std::sort(story.nodes.begin(), story.nodes.end());
  story.nodes.erase(std::unique(story.nodes.begin(), story.nodes.end()), story.nodes.end());
  story.limit_w = bus.hold_w;
}

void Supply::go_dark(Bus& bus) {
  bus.dark = true;
  bus.hold_w = 0;
  Story& story = stories_[bus.cause];
  if (!story.dark) story.nodes.clear();
  story.dark = true;
  tell(bus);
}

bool Supply::load(const std::vector<double>& node_w) {
  node_w_ = node_w;
  bool changed = std::exchange(changed_, false);
  const PowerDelivery& delivery = cluster_.power_delivery;
  for (Bus& bus : buses_) {
    bus.load_w = 0;
    for (const size_t i : bus.nodes) bus.load_w += node_w_[i];
    const double rating = rating_w(bus);
    if (bus.battery) bus.battery->set_shave_above(rating);
    bus.supply_w = bus.battery ? bus.battery->input_w(bus.load_w, true) : bus.load_w;
    const bool whole = bus.cut == 0 && bus.on >= bus_rectifiers(delivery);
    if (bus.dark || whole || bus.supply_w <= rating * (1 + kHair)) continue;
    changed = true;
    const double limit = hold_w(bus);
    if (limit > 0 && (bus.hold_w == 0 || limit < bus.hold_w)) {
      bus.hold_w = limit;
      tell(bus);
    } else {
      go_dark(bus);
    }
  }
  std::vector<double> input_w(units_.size());
  for (size_t u = 0; u < units_.size(); ++u) {
    Unit& unit = units_[u];
    unit.load_w = 0;
    if (unit.stage == 0)
      for (const size_t b : unit.buses)
        unit.load_w += buses_[b].cut > 0 ? 0 : rectifier_law(delivery, buses_[b].on).input_w(buses_[b].supply_w);
    else
      for (size_t below = 0; below < u; ++below)
        if (units_[below].stage + 1 == unit.stage && !units_[below].out &&
            units_[below].number / delivery.upstream[unit.stage].feeds == unit.number)
          unit.load_w += input_w[below];
    input_w[u] = stage_law(delivery.upstream[unit.stage]).input_w(unit.load_w);
  }
  if (!changed) return false;
  dark_.clear();
  for (const Bus& bus : buses_)
    for (const size_t i : bus.nodes) {
      limit_w_[i] = i < training_ ? bus.hold_w : 0;
      if (bus.dark) dark_.push_back(static_cast<int>(i));
    }
  std::sort(dark_.begin(), dark_.end());
  return true;
}

double Supply::next_s() const {
  double next = kNever;
  for (size_t k = 0; k < failures_.size(); ++k) {
    if (!stories_[k].begun)
      next = std::min(next, failures_[k].at.value());
    else if (!stories_[k].ended)
      next = std::min(next, end_s(failures_[k]));
  }
  const auto within = [&](double until_s) {
    if (until_s > 0 && until_s < kNever)
      next = std::min(next, std::max(now_s_ + until_s, std::nextafter(now_s_, kNever)));
  };
  for (const Bus& bus : buses_)
    if (bus.battery) within(bus.battery->until_change_s(bus.load_w, true));
  for (const Unit& unit : units_)
    if (unit.failed > 0 && !unit.out) within(unit.breaker.until_change_s(unit.load_w, true));
  return next;
}

void Supply::pass(double to_s) {
  const double dt_s = to_s - now_s_;
  now_s_ = to_s;
  for (Bus& bus : buses_)
    if (bus.battery && dt_s > 0) bus.battery->advance(dt_s, bus.load_w, true);
  for (Unit& unit : units_) {
    if (unit.failed == 0 || unit.out) continue;
    unit.breaker.advance(dt_s, unit.load_w, true);
    if (unit.breaker.tripped()) set_out(unit, true);
  }
  for (size_t k = 0; k < failures_.size(); ++k) {
    Story& story = stories_[k];
    if (!story.begun && failures_[k].at.value() <= now_s_) {
      story.begun = true;
      turn(k, 1);
    }
    if (story.begun && !story.ended && end_s(failures_[k]) <= now_s_) {
      story.ended = true;
      turn(k, -1);
    }
  }
}

void Supply::set_out(Unit& unit, bool out) {
  if (unit.out == out) return;
  unit.out = out;
  if (out)
    unit.spans.emplace_back(now_s_, kNever);
  else
    unit.spans.back().second = now_s_;
  for (const size_t b : unit.buses) hit(buses_[b], 0, out ? 1 : -1, unit.cause);
}

// A bus with so many rectifiers fewer, and so many things above it out. What is more than before ends limits and dark.
void Supply::hit(Bus& bus, int fewer, int cut, size_t cause) {
  bus.on -= fewer;
  bus.cut += cut;
  if (fewer > 0 || cut > 0) {
    bus.cause = cause;
    return;
  }
  changed_ = changed_ || bus.hold_w > 0 || bus.dark;
  bus.hold_w = 0;
  bus.dark = bus.dark && !(rating_w(bus) > 0);
}

void Supply::turn(size_t k, int sign) {
  const PowerFailure& f = failures_[k];
  const PowerDelivery& delivery = cluster_.power_delivery;
  for (Bus& bus : buses_) {
    if (f.part == FailedPart::feed) hit(bus, 0, sign, k);
    if ((f.part == FailedPart::rectifier || f.part == FailedPart::shelf) && bus.bus == f.unit)
      hit(bus, sign * rectifiers_of(delivery, f), 0, k);
  }
  if (f.part != FailedPart::stage) return;
  for (Unit& unit : units_) {
    const PowerStage& stage = delivery.upstream[unit.stage];
    if (stage.kind != f.stage || unit.number != f.unit) continue;
    unit.failed += sign * f.count;
    if (sign > 0) unit.cause = k;
    // What is left of its rating: the modules that work, a spare one among them; or a second side.
    const double spare = stage.redundancy == Redundancy::n_plus_1 ? 1 : 0;
    double left = std::clamp((stage.modules + spare - unit.failed) / stage.modules, 0.0, 1.0);
    if (stage.redundancy == Redundancy::two_n) left = unit.failed > 1 ? 0 : 1;
    if (left > 0) unit.breaker.set_rating(left * stage.rating.value());
    set_out(unit, left <= 0 || unit.breaker.tripped());
  }
}

double Supply::back_s() const {
  double back = now_s_;
  for (const Bus& bus : buses_) {
    if (!bus.dark) continue;
    for (size_t k = 0; k < failures_.size(); ++k) {
      const PowerFailure& f = failures_[k];
      const bool here = f.part == FailedPart::feed || (f.part != FailedPart::stage && f.unit == bus.bus);
      if (here && stories_[k].begun && !stories_[k].ended) back = std::max(back, end_s(f));
    }
    for (const Unit& unit : units_) {
      const bool above =
          std::any_of(unit.buses.begin(), unit.buses.end(), [&](size_t b) { return &buses_[b] == &bus; });
      if (!above || !unit.out) continue;
      if (unit.breaker.tripped()) return kNever;  // nobody closes it
      for (size_t k = 0; k < failures_.size(); ++k)
        if (failures_[k].part == FailedPart::stage && failures_[k].unit == unit.number &&
            failures_[k].stage == cluster_.power_delivery.upstream[unit.stage].kind && stories_[k].begun &&
            !stories_[k].ended)
          back = std::max(back, end_s(failures_[k]));
    }
  }
  return back;
}

void Supply::lost(double seconds, bool stopped) {
  stories_[teller_].lost_s += seconds;
  stories_[teller_].stopped |= stopped;
}

std::vector<std::string> Supply::texts() const {
  std::vector<std::string> list;
  for (const Story& s : stories_) {
    const char* many = s.nodes.size() == 1 ? "" : "s";
    if (!s.begun)
      list.push_back("it falls after the end of the run, which goes on unchanged");
    else if (s.stopped)
      list.push_back(fmt::format("node{} {} go dark at {:.3f} s; the job stops and loses {:.3f} s of work", many,
                                 fmt::join(s.nodes, ", "), s.at_s, s.lost_s));
    else if (s.dark)
      list.push_back(fmt::format("node{} {} go dark at {:.3f} s; the job starts again when they are back", many,
                                 fmt::join(s.nodes, ", "), s.at_s));
    else if (!s.nodes.empty())
      list.push_back(fmt::format("node{} {} are held at {:.0f} W a board from {:.3f} s; the job takes {:.3f} s longer",
                                 many, fmt::join(s.nodes, ", "), s.limit_w, s.at_s, s.lost_s));
    else
      list.push_back("what is left carries the load; the job goes on unchanged");
  }
  return list;
}

double Supply::lost_s() const {
  double sum = 0;
  for (const Story& story : stories_) sum += story.lost_s;
  return sum;
}

std::vector<FailedUnit> Supply::record() const {
  std::vector<FailedUnit> list;
  for (size_t k = 0; k < failures_.size(); ++k) {
    const PowerFailure& f = failures_[k];
    if (!stories_[k].begun || f.part == FailedPart::stage) continue;
    const bool feed = f.part == FailedPart::feed;
    list.push_back({feed ? "feed" : "rectifier", feed ? 0 : f.unit,
                    feed ? 0 : rectifiers_of(cluster_.power_delivery, f), f.at.value(), end_s(f)});
  }
  for (const Unit& unit : units_)
    for (const auto& [from_s, to_s] : unit.spans)
      list.push_back({cluster_.power_delivery.upstream[unit.stage].kind, unit.number, 0, from_s, to_s});
  return list;
}

void PowerFailure::describe(Description<PowerFailure>& d) {
  d.object("power_failure", "A part of the power delivery that fails during the run.");
  d.optional("part", &PowerFailure::part, "what fails");
  d.optional("unit", &PowerFailure::unit, "the bus, or the unit of the stage", between(0, 1e6));
  d.optional("count", &PowerFailure::count, "rectifiers or shelves of the bus, or modules of the stage, that fail",
             between(1, 1e4));
  d.optional("stage", &PowerFailure::stage, "kind of the upstream stage, as named in power_delivery");
  d.required("at", &PowerFailure::at, "time from run_start");
  d.optional("lasts", &PowerFailure::lasts, "how long it is gone; absent: for good, which a feed cannot be", above(0));
  d.optional("policy", &PowerFailure::policy, "lower the board limits of the bus's nodes, or let it go dark");
}

}  // namespace tw
