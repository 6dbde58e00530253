// What one bus takes from its rectifiers through a run, as some of them fail and feeds go.
#include <algorithm>

#include "core/sum.hpp"
#include "power/bus.hpp"
#include "power/loss_law.hpp"
#include "power/power_run.hpp"

namespace tw {

int BusPowerRun::rectifiers_on(const PowerDelivery& delivery, double time_s) const {
  int on = bus_rectifiers(delivery);
  for (const RectifierFailure& failure : failures)
    if (failure.at_s <= time_s) on -= failure.count;
  for (const Outage& outage : outages)
    if (outage.from_s <= time_s && time_s < outage.to_s) return 0;
  return std::max(0, on);
}

std::vector<BusPowerRun::Stretch> BusPowerRun::stretches(const PowerDelivery& delivery, double from_s,
                                                         double to_s) const {
  std::vector<double> times{from_s, to_s};
  for (const RectifierFailure& failure : failures)
    if (failure.at_s > from_s && failure.at_s < to_s) times.push_back(failure.at_s);
  for (const Outage& outage : outages)
    for (const double edge_s : {outage.from_s, outage.to_s})
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

}  // namespace tw
