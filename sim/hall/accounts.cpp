#include "hall/accounts.hpp"

#include <algorithm>
#include <cmath>

namespace tw::hall {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;

double cooling_w(const Cooling& c, const Flow& f, double outside_c) {
  if (f.base_w <= 0) return 0;
  // Losses may be more than a PUE leaves room for: they are there all the same.
  if (c.of_pue) return std::max(0.0, c.proportional * f.base_w - f.above_base_w);
  const double share = c.proportional + c.per_degree * std::max(0.0, outside_c - c.above_c);
  return std::max(0.0, c.fixed_w + share * (f.jobs_w + f.idle_w + f.network_w + f.loss_w));
}

}  // namespace

double delivery_loss_w(const Cluster& cluster, double dc_w) {
  double at_w = cluster.rectifiers.input_w(dc_w);
  for (const LossLaw& stage : cluster.upstream) at_w = stage.input_w(at_w);
  return at_w - dc_w;
}

double delivery_slope(const Cluster& cluster, double dc_w) {
  double at_w = cluster.rectifiers.input_w(dc_w), slope = 1 + cluster.rectifiers.slope(dc_w);
  for (const LossLaw& stage : cluster.upstream) {
    slope *= 1 + stage.slope(at_w);
    at_w = stage.input_w(at_w);
  }
  return slope;
}

Flow flow_of(const HallPlan& plan, const std::vector<Load>& loads, double outside_c) {
  Flow f;
  double rectifier_loss_w = 0;
  for (size_t c = 0; c < loads.size(); ++c) {
    if (!loads[c].on) continue;
    f.jobs_w += loads[c].jobs_w;
    f.idle_w += loads[c].idle_w;
    const double dc_w = loads[c].jobs_w + loads[c].idle_w;
    f.loss_w += delivery_loss_w(plan.clusters[c], dc_w);
    rectifier_loss_w += plan.clusters[c].rectifiers.input_w(dc_w) - dc_w;
    f.network_w += plan.clusters[c].network_w;
  }
  f.base_w = f.jobs_w + f.idle_w + f.network_w + (plan.cooling.dc_base ? 0 : rectifier_loss_w);
  f.above_base_w = f.loss_w - (plan.cooling.dc_base ? 0 : rectifier_loss_w);
  f.cooling_w = cooling_w(plan.cooling, f, outside_c);
  return f;
}

Accounts::Accounts(const HallPlan& plan) : plan_(&plan), jobs_(plan.jobs.size()) {}

void Accounts::put(Book& b, double nodes_w, double loss_w, double network_w, double cooling_w, double part,
                   double taken_w, double stored_w, double dt_s, double water_l) {
  b.nodes.add(nodes_w * dt_s);
  b.loss.add((loss_w + part * (taken_w - stored_w)) * dt_s);
  b.network.add(network_w * dt_s);
  b.cooling.add(cooling_w * dt_s);
  b.stored.add(part * stored_w * dt_s);
  const double feed_j = (nodes_w + loss_w + network_w + cooling_w + part * taken_w) * dt_s;
  b.kg.add(feed_j * now_kg_per_j_);
  b.money.add(feed_j * now_price_);
  b.water.add(part * water_l);
}

void Accounts::pass(double now_s, double dt_s, const std::vector<Load>& loads, const std::vector<Member>& members,
                    double taken_w, double stored_w, double limit_w) {
  const double outside_c = plan_->outside_c.at(now_s);
  const Flow f = flow_of(*plan_, loads, outside_c);
  const double load_w = f.load_w(), feed_w = load_w + taken_w;
  now_kg_per_j_ = plan_->carbon_kg_per_j.at(now_s);
  now_price_ = plan_->price_per_j.at(now_s);
  const Cooling& c = plan_->cooling;
  const double it_j = (f.jobs_w + f.idle_w + f.network_w) * dt_s;
  const double water_l = outside_c > c.water_above_c ? c.water_l_per_kwh * it_j / kJoulesPerKwh : 0;
  // Loss of a DC watt of each cluster; cooling of each watt before it.
  std::vector<double> loss_rate(loads.size(), 0), left_w(loads.size(), 0);
  double idle_loss_w = 0, idle_network_w = 0;
  for (size_t i = 0; i < loads.size(); ++i) {
    if (!loads[i].on) continue;
    const double dc_w = loads[i].jobs_w + loads[i].idle_w, loss_w = delivery_loss_w(plan_->clusters[i], dc_w);
    if (dc_w > 0) loss_rate[i] = loss_w / dc_w;
    idle_loss_w += dc_w > 0 ? loss_rate[i] * loads[i].idle_w : loss_w;
    left_w[i] = plan_->clusters[i].network_w;
  }
  const double before_w = load_w - f.cooling_w, cooling_rate = before_w > 0 ? f.cooling_w / before_w : 0;
  for (const Member& m : members) {
    const auto k = static_cast<size_t>(m.cluster);
    if (!loads[k].on) continue;
    const double nodes_w = m.nodes * m.node_w, loss_w = nodes_w * loss_rate[k];
    const double own_w = nodes_w + loss_w + m.network_w, cool_w = own_w * cooling_rate;
    left_w[k] -= m.network_w;
    Book& book = jobs_[static_cast<size_t>(m.job)];
    put(book, nodes_w, loss_w, m.network_w, cool_w, load_w > 0 ? (own_w + cool_w) / load_w : 0, taken_w, stored_w, dt_s,
        water_l);
    book.node_s.add(m.nodes * dt_s);
  }
  for (const double w : left_w) idle_network_w += w;
  const double own_w = f.idle_w + idle_loss_w + idle_network_w, cool_w = own_w * cooling_rate;
  put(idle_, f.idle_w, idle_loss_w, idle_network_w, cool_w, load_w > 0 ? (own_w + cool_w) / load_w : 1, taken_w,
      stored_w, dt_s, water_l);
  nodes_.add(f.jobs_w * dt_s), idle_nodes_.add(f.idle_w * dt_s);
  loss_.add((f.loss_w + taken_w - stored_w) * dt_s);
  network_.add(f.network_w * dt_s), cooling_.add(f.cooling_w * dt_s), stored_.add(stored_w * dt_s);
  feed_.add(feed_w * dt_s), kg_.add(feed_w * dt_s * now_kg_per_j_), money_.add(feed_w * dt_s * now_price_);
  water_.add(water_l), base_.add(f.base_w * dt_s), it_.add(it_j);
  (taken_w > 0 ? taken_ : given_).add(std::abs(taken_w) * dt_s);
  if (feed_w > limit_w * (1 + 1e-12)) {
    above_s_.add(dt_s);
    above_j_.add((feed_w - limit_w) * dt_s);
  }
  if (dt_s > 0) peak_w_ = std::max(peak_w_, feed_w);
}

Joules Accounts::joules(const Book& b, bool idle) const {
  Joules j;
  (idle ? j.idle_j : j.nodes_j) = b.nodes.value();
  j.loss_j = b.loss.value(), j.network_j = b.network.value(), j.cooling_j = b.cooling.value();
  j.stored_j = b.stored.value();
  return j;
}

void Accounts::close(HallOutcome& out) const {
  Sum held;
  for (const Book& b : jobs_) held.add(b.node_s.value());
  const Joules nobody = joules(idle_, true);
  for (size_t i = 0; i < jobs_.size(); ++i) {
    JobOutcome& job = out.jobs[i];
    const Book& b = jobs_[i];
    job.energy = joules(b, false);
    job.node_s = b.node_s.value();
    const double part = held.value() > 0 ? job.node_s / held.value() : 0;
    job.energy.idle_j = part * nobody.total();
    job.energy_j = job.energy.total();
    job.network_share = job.energy_j > 0 ? job.energy.network_j / job.energy_j : 0;
    job.kg_co2e = b.kg.value() + part * idle_.kg.value();
    job.water_l = b.water.value() + part * idle_.water.value();
    job.cost_energy = b.money.value() + part * idle_.money.value();
  }
  out.energy = {nodes_.value(),   idle_nodes_.value(), loss_.value(),
                network_.value(), cooling_.value(),    stored_.value()};
  // What a battery gave and took back leaves the rounding of its sums.
  if (std::abs(out.energy.stored_j) < 1e-12 * taken_.value()) out.energy.stored_j = 0;
  out.feed_j = feed_.value();
  out.books_error = out.feed_j > 0 ? (out.energy.total() - out.feed_j) / out.feed_j : 0;
  out.kg_co2e = kg_.value(), out.water_l = water_.value(), out.cost_energy = money_.value();
  out.above_limit_s = above_s_.value(), out.above_limit_j = above_j_.value();
  out.battery_given_j = given_.value(), out.battery_taken_j = taken_.value();
  out.peak_w = peak_w_;
  out.mean_w = out.end_s > 0 ? out.feed_j / out.end_s : 0;
  if (base_.value() > 0) out.pue = (out.feed_j - out.energy.stored_j) / base_.value();
  if (it_.value() > 0 && plan_->cooling.water_l_per_kwh > 0)
    out.wue_l_per_kwh = out.water_l / (it_.value() / kJoulesPerKwh);
}

std::vector<double> demand_by_month(const std::vector<Moment>& power, double end_s) {
  constexpr double window_s = 900, month_s = 30 * 86400.0;
  std::vector<double> months(static_cast<size_t>(std::ceil(end_s / month_s)), 0);
  double filled_j = 0;  // of the window that is open
  const auto put = [&](double begin_s, double mean_w) {
    double& most = months[std::min(months.size() - 1, static_cast<size_t>(begin_s / month_s))];
    most = std::max(most, mean_w);
  };
  for (size_t i = 0; i < power.size(); ++i) {
    double now_s = power[i].time_s;
    const double to_s = std::min(end_s, i + 1 < power.size() ? power[i + 1].time_s : end_s), w = power[i].feed_w;
    while (now_s < to_s) {
      const double begin_s = std::floor(now_s / window_s + 1e-9) * window_s, close_s = begin_s + window_s;
      if (now_s <= begin_s + 1e-6 && to_s >= close_s) {  // whole windows of one power: those of a month at once
        const double month_end_s = (std::floor(begin_s / month_s + 1e-9) + 1) * month_s;
        put(begin_s, w);
        const double whole = std::floor((std::min(to_s, month_end_s) - begin_s) / window_s + 1e-9);
        now_s = begin_s + std::max(1.0, whole) * window_s;
        filled_j = 0;
        continue;
      }
      const double stop_s = std::min(to_s, close_s);
      filled_j += w * (stop_s - now_s);
      now_s = stop_s;
      if (stop_s >= close_s || stop_s >= end_s) {
        put(begin_s, filled_j / window_s);  // the last, shorter one counts as a whole, too
        filled_j = 0;
      }
    }
  }
  return months;
}

}  // namespace tw::hall
