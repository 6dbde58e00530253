#include "hall/hall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"
#include "hall/hall_state.hpp"
#include "hall/ratings.hpp"

namespace tw::hall {
namespace {

constexpr double kCentury_s = 100 * 365.25 * 86400.0;

struct NodeEvent {  // a node fails or is repaired
  double at_s = 0;
  int cluster = 0, node = 0;
  bool fails = true;
  bool operator>(const NodeEvent& o) const {
    return std::tie(at_s, cluster, node) > std::tie(o.at_s, o.cluster, o.node);
  }
};

class Clock {
 public:
  Clock(const HallPlan& plan, uint64_t seed, bool keep_power)
      : plan_(plan), s_(plan), accounts_(plan), ratings_(plan), keep_power_(keep_power) {
    out_.seed = seed;
    for (const Job& job : plan.jobs) {
      JobOutcome o;
      o.name = job.name, o.kind = job.kind, o.cluster = plan.clusters[static_cast<size_t>(job.cluster)].name;
      o.nodes = job.nodes, o.priority = job.priority, o.arrival_s = job.arrival_s, o.tokens = job.tokens;
      out_.jobs.push_back(std::move(o));
    }
    for (int j = 0; j < static_cast<int>(plan.jobs.size()); ++j) coming_.push_back(j);
    std::stable_sort(coming_.begin(), coming_.end(),
                     [&](int a, int b) { return s_.job(a).arrival_s > s_.job(b).arrival_s; });  // the next at the back
    for (size_t c = 0; c < plan.clusters.size(); ++c) {
      streams_.emplace_back();
      if (plan.clusters[c].node_mtbf_s == kNever) continue;
      for (int node = 0; node < plan.clusters[c].nodes; ++node) {
        streams_[c].push_back(random_stream(seed, "hall node failure", c * 1000003 + static_cast<uint64_t>(node)));
        draw_failure(static_cast<int>(c), node, 0);
      }
    }
    if (plan.battery) set_battery(1);
  }

  HallOutcome run() {
    while (true) {
      s_.now_s = now_s_;
      if (now_s_ >= plan_.end_s) break;
      if (plan_.end_s == kNever) check_idle(plan_, now_s_);
      settle();
      if (plan_.end_s == kNever && coming_.empty() && s_.waiting.empty() && s_.running.empty()) break;
      const double next_s = next_event_s();
      if (next_s == kNever || waits_in_vain())
        throw DoesNotFit(fmt::format("{} waits for ever ({}): nothing that would let it start is to come",
                                     s_.job(s_.waiting.front()).name, s_.now(s_.waiting.front()).why));
      if (next_s > kCentury_s) throw DoesNotFit("jobs are not done in a century; \"lasts\" ends the hall earlier");
      pass_until(next_s);
      handle();
    }
    return finish();
  }

 private:
  void draw_failure(int c, int node, double from_s) {
    const double u = uniform(streams_[static_cast<size_t>(c)][static_cast<size_t>(node)]);
    events_.push({from_s - std::log(u) * plan_.clusters[static_cast<size_t>(c)].node_mtbf_s, c, node, true});
  }

  // A budget that repeats goes on for ever: after two rounds with nothing else it has let start what it can.
  bool waits_in_vain() {
    if (!coming_.empty() || !s_.running.empty() || !events_.empty() || plan_.end_s < kNever) quiet_since_s_ = now_s_;
    for (const StepSeries* series : {&plan_.limit_w, &plan_.outside_c, &plan_.carbon_kg_per_j, &plan_.price_per_j})
      quiet_since_s_ = std::max(quiet_since_s_, series->settled_s());
    for (const Window& w : plan_.maintenance) quiet_since_s_ = std::max(quiet_since_s_, w.to_s);
    for (const Outage& o : plan_.outages) quiet_since_s_ = std::max(quiet_since_s_, o.to_s);
    for (const int j : s_.waiting)
      if (s_.job(j).deadline_s < kNever) quiet_since_s_ = std::max(quiet_since_s_, s_.job(j).deadline_s);
    return plan_.limit_w.period_s() > 0 && now_s_ > quiet_since_s_ + 2 * plan_.limit_w.period_s();
  }

  // The shelf keeps below the limit that holds now.
  void set_battery(double charge) {
    BatteryType type = *plan_.battery;
    battery_limit_w_ = type.shave_above_w = plan_.limit_w.at(now_s_);
    battery_ = std::make_unique<BatteryShelf>("battery", type, charge);
  }

  // Rounding of times must not leave a job with next to nothing to do: that would take events of its own.
  double hair_s() const { return 1e-9 * std::max(1.0, 1e-3 * now_s_); }

  bool feed_on() const {
    return std::none_of(plan_.outages.begin(), plan_.outages.end(),
                        [&](const Outage& o) { return o.from_s <= now_s_ && now_s_ < o.to_s; });
  }

  // Everything that follows at once from what just happened.
  void settle() {
    if (battery_ && battery_limit_w_ != s_.limit_w()) set_battery(battery_->charge_j() / plan_.battery->capacity_j);
    const bool feed = feed_on();
    if (s_.dark && feed) s_.dark = false;
    keep_budget(s_);
    while (stop_at_checkpoints() || (feed && start_jobs(s_))) keep_budget(s_);
    share_links(s_);
    if (!feed && !s_.dark && !(battery_ && battery_->limit_w(false) >= s_.load_w() * (1 - 1e-9))) go_dark();
    if (!feed)
      for (const int j : s_.waiting) s_.wait_for(j, "outage");
    note_stays();
    note_late();
  }

  // Jobs that are to stop and stand at a checkpoint give their nodes back.
  bool stop_at_checkpoints() {
    bool any = false;
    for (const int j : std::vector<int>(s_.running)) {
      if (!s_.now(j).stopping || s_.to_checkpoint_s(j) > hair_s()) continue;
      ++outcome(j).pauses;
      if (s_.now(j).started_s == now_s_) s_.now(j).barred_s = now_s_;
      leave(j);
      s_.now(j).why = "paused";
      s_.enqueue(j);
      any = true;
    }
    return any;
  }

  JobOutcome& outcome(int j) { return out_.jobs[static_cast<size_t>(j)]; }

  void leave(int j) {
    end_stay(j);
    s_.pools[static_cast<size_t>(s_.job(j).cluster)].release(s_.now(j).nodes);
    s_.now(j).nodes.clear();
    s_.running.erase(std::find(s_.running.begin(), s_.running.end(), j));
    shares_known_ = false;
  }

  // The work since the last checkpoint is lost; no more.
  void fail(int j, const char* why) {
    JobNow& n = s_.now(j);
    const Job& b = s_.job(j);
    const double kept_s =
        b.checkpoint_s > 0 ? std::floor(n.progress_s / b.checkpoint_s * (1 + 1e-12)) * b.checkpoint_s : 0;
    outcome(j).lost_s += n.progress_s - std::min(kept_s, n.progress_s);
    n.progress_s = std::min(kept_s, n.progress_s);
    ++outcome(j).failures;
    leave(j);
    n.was_stopped = true;
    n.why = why;
    s_.enqueue(j);
  }

  void go_dark() {
    for (const int j : std::vector<int>(s_.running)) fail(j, "outage");
    s_.dark = true;
  }

  // Only maintenance stops a job that has no checkpoint to stop at.
  void note_late() {
    for (const int j : s_.running)
      if (s_.now(j).stopping && s_.to_checkpoint_s(j) == kNever && late_.insert(j).second)
        out_.late_for_service.push_back(s_.job(j).name);
  }

  // One stay for each job and cap; a change ends it.
  void note_stays() {
    for (const int j : s_.running) {
      JobOutcome& o = outcome(j);
      if (!o.start_s) o.start_s = now_s_;
      const JobNow& n = s_.now(j);
      const double cap_w = s_.job(j).points[n.point].cap_w;
      const char* what = n.start_left_s > 0 ? "start-up" : "run";
      const auto open = open_.find(j);
      if (open != open_.end() && open->second.cap_w == cap_w && open->second.what == what) continue;
      end_stay(j);
      if (open == open_.end()) shares_known_ = false;
      open_[j] = {j, now_s_, now_s_, cap_w, what, n.nodes.front()};
    }
  }
  void end_stay(int j) {
    const auto open = open_.find(j);
    if (open == open_.end()) return;
    open->second.to_s = now_s_;
    if (keep_power_ && now_s_ > open->second.from_s) out_.stays.push_back(open->second);
    open_.erase(open);
  }

  double next_event_s() {
    double next_s = plan_.end_s;
    const auto at = [&](double t) { next_s = std::min(next_s, t); };
    if (!coming_.empty()) at(s_.job(coming_.back()).arrival_s);
    for (const int j : s_.running) {
      at(now_s_ + s_.left_s(j));
      if (s_.now(j).start_left_s > 0) at(now_s_ + s_.now(j).start_left_s);
      if (s_.now(j).stopping) at(now_s_ + s_.to_checkpoint_s(j));
    }
    for (const StepSeries* series : {&plan_.limit_w, &plan_.outside_c, &plan_.carbon_kg_per_j, &plan_.price_per_j})
      at(series->next_change_s(now_s_));
    for (const Window& w : plan_.maintenance)
      for (const double t : {w.from_s, w.to_s})
        if (t > now_s_) at(t);
    for (const Outage& o : plan_.outages)
      for (const double t : {o.from_s, o.to_s})
        if (t > now_s_) at(t);
    if (!events_.empty()) at(std::max(now_s_, events_.top().at_s));
    for (const int j : s_.waiting)  // a deadline ends a wish
      if (s_.job(j).carbon_below < kNever || s_.job(j).price_below < kNever)
        if (const double t = s_.job(j).deadline_s - s_.expected_s(j); t > now_s_) at(t);
    if (battery_ && !s_.dark) {
      const double until_s = battery_->until_change_s(s_.load_w(), feed_on());
      if (until_s > 0) at(std::max(now_s_ + until_s, std::nextafter(now_s_, kNever)));
    }
    return next_s;
  }

  void find_shares() {
    if (shares_known_) return;
    shares_known_ = true;
    for (size_t c = 0; c < plan_.clusters.size(); ++c) {
      std::vector<int> here;
      std::vector<const std::vector<int>*> nodes;
      for (const int j : s_.running)
        if (s_.job(j).cluster == static_cast<int>(c)) here.push_back(j), nodes.push_back(&s_.now(j).nodes);
      const Cluster& cluster = plan_.clusters[c];
      if (here.empty() || !(cluster.network_w > 0)) continue;
      const auto shares =
          plan_.network_shares ? plan_.network_shares(static_cast<int>(c), nodes) : std::vector<double>{};
      for (size_t i = 0; i < here.size(); ++i)
        s_.now(here[i]).network_w =
            plan_.network_shares ? shares[i] : cluster.network_w * s_.job(here[i]).nodes / cluster.nodes;
    }
  }

  // All is constant until then.
  void pass_until(double next_s) {
    const double dt_s = next_s - now_s_;
    find_shares();
    if (dt_s > 0) ratings_.check(s_);
    const std::vector<Load> loads = s_.loads();
    const double load_w = flow_of(plan_, loads, plan_.outside_c.at(now_s_)).load_w(), limit_w = s_.limit_w();
    const bool feed = feed_on();
    double taken_w = 0, stored_w = 0;
    const double before_j = battery_ ? battery_->charge_j() : 0;
    if (battery_ && !s_.dark) {
      taken_w = battery_->input_w(load_w, feed) - load_w;
      if (dt_s > 0) {
        battery_->advance(dt_s, load_w, feed);
        stored_w = (battery_->charge_j() - before_j) / dt_s;
      }
    }
    note_moment(loads, taken_w, limit_w, before_j);
    std::vector<Accounts::Member> members;
    for (const int j : s_.running)
      members.push_back({j, s_.job(j).cluster, s_.job(j).nodes, s_.node_w(j), s_.now(j).network_w});
    if (dt_s > 0) accounts_.pass(now_s_, dt_s, loads, members, taken_w, stored_w, limit_w);
    for (const int j : s_.running) {
      JobNow& n = s_.now(j);
      JobOutcome& o = outcome(j);
      o.run_s += dt_s;
      if (n.point > 0) o.capped_s += dt_s;
      o.links_s += dt_s * (1 - 1 / n.links.slowdown);
      const double starting_s = std::min(dt_s, n.start_left_s);
      n.start_left_s = n.start_left_s - dt_s < hair_s() ? 0 : n.start_left_s - dt_s;
      n.progress_s += (dt_s - starting_s) * s_.rate(j, n.point);
    }
    if (s_.dark) out_.dark_s += dt_s;
    for (size_t c = 0; c < plan_.clusters.size(); ++c) held_node_s_.add(s_.pools[c].held() * dt_s);
    now_s_ = s_.now_s = next_s;
  }

  void note_moment(const std::vector<Load>& loads, double taken_w, double limit_w, double charge_j) {
    const Flow f = flow_of(plan_, loads, plan_.outside_c.at(now_s_));
    Moment m;
    m.time_s = now_s_, m.limit_w = limit_w, m.charge_j = charge_j;
    m.jobs_w = f.jobs_w, m.idle_w = f.idle_w, m.loss_w = f.loss_w, m.network_w = f.network_w;
    m.cooling_w = f.cooling_w, m.battery_w = taken_w, m.feed_w = f.load_w() + taken_w;
    m.waiting = static_cast<int>(s_.waiting.size()), m.running = static_cast<int>(s_.running.size());
    if (!out_.power.empty()) {
      const Moment& last = out_.power.back();
      if (last.time_s == m.time_s)
        out_.power.pop_back();
      else if (last.jobs_w == m.jobs_w && last.idle_w == m.idle_w && last.cooling_w == m.cooling_w &&
               last.limit_w == m.limit_w && last.feed_w == m.feed_w && last.waiting == m.waiting &&
               last.running == m.running)
        return;
    }
    out_.power.push_back(m);
  }

  void handle() {
    for (const int j : std::vector<int>(s_.running)) {
      if (s_.now(j).start_left_s > 0 || s_.left_s(j) > hair_s()) continue;
      s_.now(j).progress_s = s_.job(j).work_s;
      s_.now(j).state = JobState::done;
      outcome(j).end_s = now_s_;
      ++out_.finished;
      leave(j);
    }
    while (!events_.empty() && events_.top().at_s <= now_s_) {
      const NodeEvent e = events_.top();
      events_.pop();
      NodePool& pool = s_.pools[static_cast<size_t>(e.cluster)];
      if (e.fails) {
        if (++out_.node_failures > kMostNodeFailures)
          throw DoesNotFit(fmt::format("nodes fail too often: {} of {} jobs are done in {:.3g} days", out_.finished,
                                       plan_.jobs.size(), now_s_ / 86400));
        const int j = pool.holder(e.node);
        if (j >= 0) fail(j, "failure");
        const double back_s = now_s_ + plan_.clusters[static_cast<size_t>(e.cluster)].repair_s;
        pool.set_failed(e.node, true, back_s);
        events_.push({back_s, e.cluster, e.node, false});
      } else {
        pool.set_failed(e.node, false);
        draw_failure(e.cluster, e.node, now_s_);
      }
    }
    for (; !coming_.empty() && s_.job(coming_.back()).arrival_s <= now_s_; coming_.pop_back())
      s_.enqueue(coming_.back());
  }

  HallOutcome finish() {
    out_.end_s = now_s_;
    for (const int j : std::vector<int>(s_.running)) end_stay(j);
    std::sort(out_.stays.begin(), out_.stays.end(),
              [](const Stay& a, const Stay& b) { return std::tie(a.from_s, a.job) < std::tie(b.from_s, b.job); });
    accounts_.close(out_);
    out_.demand_by_month_w = now_s_ > 0 ? demand_by_month(out_.power, now_s_) : std::vector<double>{};
    if (!out_.demand_by_month_w.empty())
      out_.demand_w = *std::max_element(out_.demand_by_month_w.begin(), out_.demand_by_month_w.end());
    double nodes = 0, useful = 0, wait = 0;
    for (const Cluster& c : plan_.clusters) nodes += c.nodes;
    for (int j = 0; j < static_cast<int>(plan_.jobs.size()); ++j) {
      JobOutcome& o = outcome(j);
      const JobState state = s_.now(j).state;
      o.state = state == JobState::done      ? "finished"
                : state == JobState::on      ? "running"
                : state == JobState::waiting ? "waiting"
                                             : "to come";
      o.useful_node_s = s_.now(j).progress_s * o.nodes;
      if (state == JobState::waiting) s_.wait_for(j, "end");
      o.wait_by_s = std::move(s_.now(j).waited_s);
      for (const auto& reason : o.wait_by_s) o.wait_s += reason.second;
      if (o.end_s || s_.job(j).deadline_s <= now_s_) o.in_time = o.end_s && *o.end_s <= s_.job(j).deadline_s;
      if (s_.job(j).deadline_s == kNever) o.in_time.reset();
      useful += o.useful_node_s;
      wait += o.wait_s;
    }
    if (battery_) out_.battery_charge_j = battery_->charge_j();
    if (now_s_ > 0) out_.utilisation = held_node_s_.value() / (nodes * now_s_);
    if (held_node_s_.value() > 0) out_.goodput = useful / held_node_s_.value();
    if (!out_.jobs.empty()) out_.wait_mean_s = wait / static_cast<double>(out_.jobs.size());
    if (!keep_power_) out_.power.clear();
    return std::move(out_);
  }

  const HallPlan& plan_;
  HallState s_;
  Accounts accounts_;
  const Ratings ratings_;
  const bool keep_power_;
  double now_s_ = 0, battery_limit_w_ = kNever, quiet_since_s_ = 0;
  HallOutcome out_;
  std::vector<int> coming_;
  std::vector<std::vector<SplitMix64>> streams_;
  std::priority_queue<NodeEvent, std::vector<NodeEvent>, std::greater<>> events_;
  std::unique_ptr<BatteryShelf> battery_;
  std::map<int, Stay> open_;
  std::set<int> late_;
  bool shares_known_ = false;
  Sum held_node_s_;
};

}  // namespace

HallOutcome run_hall(const HallPlan& plan, uint64_t seed, bool keep_power) {
  return Clock(plan, seed, keep_power).run();
}

}  // namespace tw::hall
