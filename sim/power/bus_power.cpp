// What one bus takes from its rectifiers through a run, as some of them fail and feeds go.
#include <algorithm>
#include <cmath>

#include "core/sum.hpp"
#include "power/bus.hpp"
#include "power/loss_law.hpp"
#include "power/power_run.hpp"
#include "power/stage.hpp"

namespace tw {

int BusPowerRun::rectifiers_on(const PowerDelivery& delivery, double time_s) const {
  int on = bus_rectifiers(delivery);
  for (const FailedUnit& failure : failures)
    if (failure.at(time_s)) on -= failure.count;
  return std::max(0, on);
}

std::vector<BusPowerRun::Stretch> BusPowerRun::stretches(const PowerDelivery& delivery, double from_s,
                                                         double to_s) const {
  std::vector<double> times{from_s, to_s};
  for (const FailedUnit& failure : failures)
    for (const double edge_s : {failure.from_s, failure.to_s})
      if (edge_s > from_s && edge_s < to_s) times.push_back(edge_s);
  std::sort(times.begin(), times.end());
  std::vector<Stretch> list;
  for (size_t i = 0; i + 1 < times.size(); ++i)
    list.push_back({times[i], times[i + 1], rectifiers_on(delivery, times[i])});
  return list;
}

double BusPowerRun::loss_between_j(const PowerDelivery& delivery, double from_s, double to_s) const {
  Sum joules;
  for (const Stretch& s : stretches(delivery, from_s, to_s))
    joules.add(rectifier_law(delivery, s.on).loss_j(supply->integral(s.from_s, s.to_s), s.to_s - s.from_s));
  return joules.value();
}

PiecewiseWatts BusPowerRun::ac(const PowerDelivery& delivery) const {
  const auto input_w = [&](int on, double w) { return rectifier_law(delivery, on).input_w(w); };
  PiecewiseWatts result(input_w(rectifiers_on(delivery, supply->end_s()), supply->outside_w()));
  if (supply->pieces() > 0) result.begin(supply->begin_s());
  for (size_t i = 0; i < supply->pieces(); ++i)
    for (const Stretch& s : stretches(delivery, supply->piece_begin_s(i), supply->piece_end_s(i)))
      result.append(s.to_s, input_w(s.on, supply->piece_w(i)));
  return result;
}

// From one change of anything to the next: of the load, of what the rectifiers can give, of the battery.
std::shared_ptr<const PiecewiseWatts> supply_through_battery(const PowerDelivery& delivery, const BusPowerRun& bus) {
  const std::shared_ptr<const PiecewiseWatts>& dc = bus.dc;
  if (!delivery.battery || dc->pieces() == 0 ||
      (bus.failures.empty() && dc->peak(dc->begin_s(), dc->end_s()).watts <= bus_rating_w(delivery)))
    return dc;
  BatteryShelf battery("battery", battery_of_bus(*delivery.battery, bus_rating_w(delivery)));
  auto supply = std::make_shared<PiecewiseWatts>(dc->outside_w());
  supply->begin(dc->begin_s());
  for (size_t i = 0; i < dc->pieces(); ++i) {
    double now_s = dc->piece_begin_s(i);
    while (now_s < dc->piece_end_s(i)) {
      battery.set_shave_above(bus.rectifiers_on(delivery, now_s) * delivery.rectifier.rating.value());
      double end_s = dc->piece_end_s(i);
      for (const FailedUnit& failure : bus.failures)
        for (const double edge_s : {failure.from_s, failure.to_s})
          if (edge_s > now_s) end_s = std::min(end_s, edge_s);
      // A load that ends as the battery does ends with it: rounding leaves no sliver that nothing carries.
      const double until_s = battery.until_change_s(dc->piece_w(i), true), change_s = now_s + until_s;
      if (until_s > 0 && change_s < end_s - 1e-9 * std::max(1.0, end_s))
        end_s = std::max(change_s, std::nextafter(now_s, end_s));
      supply->append(end_s, battery.input_w(dc->piece_w(i), true));
      battery.advance(end_s - now_s, dc->piece_w(i), true);
      now_s = end_s;
    }
  }
  return supply;
}

}  // namespace tw
