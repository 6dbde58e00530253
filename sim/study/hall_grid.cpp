// What the utility sees of a hall, and the described outputs of its answer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/codec.hpp"
#include "core/outputs.hpp"
#include "core/random.hpp"
#include "core/version.hpp"
#include "hall/accounts.hpp"
#include "study/hall_study.hpp"

namespace tw {
namespace {

// A step over and over from `phase_s` before 0 on, times `factor`.
PiecewiseWatts repeated(const StepPower& step, double phase_s, double span_s, double factor) {
  PiecewiseWatts w(step.mean_w() * factor);
  w.begin(0);
  const double period_s = step.end_s - step.begin_s.front();
  for (double from_s = -phase_s; from_s < span_s; from_s += period_s)
    for (size_t i = 0; i < step.begin_s.size(); ++i) {
      const double end_s =
          from_s + (i + 1 < step.begin_s.size() ? step.begin_s[i + 1] : step.end_s) - step.begin_s.front();
      if (end_s > w.end_s()) w.append(std::min(end_s, span_s), step.total_w(i) * factor);
    }
  return w;
}

// Of a stay in which a step with known watts works; null: another.
const StepPower* step_of(const std::vector<HallKindResult>& kinds, const hall::HallPlan& plan, const hall::Stay& stay) {
  if (stay.what != "run") return nullptr;
  for (const HallKindResult& kind : kinds)
    for (size_t k = 0; k < kind.step.size() && kind.name == plan.jobs[static_cast<size_t>(stay.job)].kind; ++k)
      if (kind.caps[k].cap_w == stay.cap_w && !kind.step[k].begin_s.empty()) return &kind.step[k];
  return nullptr;
}

// The moment of the highest power of jobs, of those at which a job with a step works.
std::optional<hall::Moment> highest_with_steps(const std::vector<HallKindResult>& kinds, const hall::HallPlan& plan,
                                               const hall::HallOutcome& out) {
  std::vector<int> more(out.power.size() + 1, 0);  // such jobs than at the moment before
  const auto first_at = [&](double time_s) {
    return static_cast<size_t>(std::lower_bound(out.power.begin(), out.power.end(), time_s,
                                                [](const hall::Moment& m, double t) { return m.time_s < t; }) -
                               out.power.begin());
  };
  for (const hall::Stay& stay : out.stays)
    if (step_of(kinds, plan, stay) != nullptr) ++more[first_at(stay.from_s)], --more[first_at(stay.to_s)];
  std::optional<hall::Moment> top;
  int working = 0;
  for (size_t i = 0; i < out.power.size(); ++i)
    if ((working += more[i]) > 0 && (!top || out.power[i].jobs_w > top->jobs_w)) top = out.power[i];
  return top;
}

// What one more watt of a node takes at the feed, by cluster, at the means of that moment.
std::vector<double> slopes_at(const hall::HallPlan& plan, const hall::HallOutcome& out, double at_s) {
  std::vector<double> dc_w;
  for (const hall::Cluster& c : plan.clusters) dc_w.push_back(c.nodes * c.idle_w);
  for (const hall::Stay& stay : out.stays) {
    if (stay.from_s > at_s || stay.to_s <= at_s) continue;
    const hall::Job& job = plan.jobs[static_cast<size_t>(stay.job)];
    double w = job.start_up_w;
    for (const hall::CapPoint& p : job.points)
      if (stay.what == "run" && p.cap_w == stay.cap_w) w = p.node_w;
    const auto c = static_cast<size_t>(job.cluster);
    dc_w[c] += job.nodes * (w - plan.clusters[c].idle_w);
  }
  for (size_t c = 0; c < dc_w.size(); ++c) dc_w[c] = hall::delivery_slope(plan.clusters[c], dc_w[c]);
  return dc_w;
}

}  // namespace

std::vector<std::string> grid_remarks(const LoadedHall& loaded, const std::optional<HallGridView>& view) {
  if (!loaded.input.grid_limits) return {};
  if (!view) return {"no job with a simulated step works at any time: the grid limits are held against nothing"};
  std::vector<std::string> remarks;
  if (view->after.ramp.limit && !view->after.ramp.kept)
    remarks.push_back(fmt::format("the grid view lasts {:.4g} s: no ramp over {} was looked at", view->span_s,
                                  to_text(loaded.input.grid_limits->ramp_over)));
  if (view->after.amplitude.limit && !view->after.amplitude.kept)
    remarks.push_back(fmt::format("lines of the grid view stand {:.4g} Hz apart: none is in the band of the limit",
                                  1 / view->span_s));
  return remarks;
}

std::optional<HallGridView> hall_grid_view(const LoadedHall& loaded, const std::vector<HallKindResult>& kinds,
                                           const hall::HallPlan& plan, const hall::HallOutcome& out) {
  const auto top = highest_with_steps(kinds, plan, out);
  if (!top) return std::nullopt;
  HallGridView view;
  view.at_s = top->time_s;
  const std::vector<double> slope = slopes_at(plan, out, view.at_s);
  struct Member {
    const StepPower* step;
    double factor;
    int job;
  };
  std::vector<Member> members;
  double longest_s = 0, steady_w = top->feed_w;
  for (const hall::Stay& stay : out.stays) {
    if (stay.from_s > view.at_s || stay.to_s <= view.at_s) continue;
    const StepPower* const step = step_of(kinds, plan, stay);
    if (step == nullptr) continue;
    const hall::Job& job = plan.jobs[static_cast<size_t>(stay.job)];
    // Cooling does not follow a step; rectifiers and the stages above them do.
    const double factor = job.nodes * slope[static_cast<size_t>(job.cluster)];
    members.push_back({step, factor, stay.job});
    longest_s = std::max(longest_s, step->end_s - step->begin_s.front());
    steady_w -= step->mean_w() * factor;
  }
  // Whole periods of the slowest; the shorter ones leak little.
  view.span_s = std::ceil(60 / longest_s) * longest_s;
  std::vector<PiecewiseWatts> parts;
  for (const Member& m : members) {
    SplitMix64 dice = random_stream(out.seed, "hall phases", static_cast<uint64_t>(m.job));
    parts.push_back(
        repeated(*m.step, uniform(dice) * (m.step->end_s - m.step->begin_s.front()), view.span_s, m.factor));
  }
  std::vector<const PiecewiseWatts*> list;
  for (const PiecewiseWatts& part : parts) list.push_back(&part);
  const PiecewiseWatts whole = PiecewiseWatts::sum(list).affine(steady_w, 1);
  const GridLimits limits = loaded.input.grid_limits.value_or(GridLimits{});
  const auto ask = [&](const Curve& curve, std::vector<SpectrumLine>& lines) {
    lines = spectrum(curve, 0.05, 20);
    return ask_grid(limits, curve, lines);
  };
  view.curve_before = curve_of(whole, 0, view.span_s);
  view.before = ask(view.curve_before, view.lines_before);
  view.curve_after = view.curve_before, view.lines_after = view.lines_before, view.after = view.before;
  if (!loaded.input.smoothing) return view;
  const SmoothedPower smoothed = smooth(*loaded.input.smoothing, whole, 0, view.span_s);
  view.curve_after = smoothed.curve;
  view.after = ask(view.curve_after, view.lines_after);
  view.burned_j = smoothed.burned_j, view.withheld_j = smoothed.withheld_j;
  view.battery_given_j = smoothed.battery_given_j, view.battery_taken_j = smoothed.battery_taken_j;
  view.battery_lost_j = smoothed.battery_lost_j, view.battery_swing_j = smoothed.battery_swing_j;
  view.capacitor_swing_j = smoothed.capacitor_swing_j;
  return view;
}

void HallLaw::describe(Outputs<HallLaw>& d) {
  d.output("cap_w", &HallLaw::cap_w, "W", "limit of a board; 0: its own");
  d.output("work_s", &HallLaw::work_s, "s", "the run under it");
  d.output("slowdown", &HallLaw::slowdown, "1", "over that without a cap");
  d.output("node_w", &HallLaw::node_w, "W", "a node on its DC bus, mean over the run");
  d.output("step_s", &HallLaw::step_s, "s", "one training step; null for a job without a scenario");
  d.output(
      "links", &HallLaw::links, "",
      "what narrower uplinks make of it, for jobs that share them; empty where uplinks carry all that adapters send");
}

void HallKindResult::describe(Outputs<HallKindResult>& d) {
  d.output("name", &HallKindResult::name, "", "entry of the hall's file");
  d.output("scenario", &HallKindResult::scenario, "", "what was simulated").null_if_empty();
  d.output("nodes", &HallKindResult::nodes, "1", "nodes").whole();
  d.output("start_up_s", &HallKindResult::start_up_s, "s", "before any work");
  d.output("start_up_w", &HallKindResult::start_up_w, "W", "a node meanwhile");
  d.output("tokens", &HallKindResult::tokens, "1", "that it trains on; 0: not known");
  d.output("caps", &HallKindResult::caps, "", "what each cap does");
}

void HallGridView::describe(Outputs<HallGridView>& d) {
  d.output("at_s", &HallGridView::at_s, "s",
           "moment of the highest power of jobs, of those at which a job with a step works");
  d.output("span_s", &HallGridView::span_s, "s", "steps repeat for that long");
  d.output("before", &HallGridView::before, "", "without smoothing");
  d.output("after", &HallGridView::after, "", "with smoothing");
  d.output("burned_j", &HallGridView::burned_j, "J",
           "by the floor and boards that come down, in the span; null without smoothing");
  d.output("withheld_j", &HallGridView::withheld_j, "J",
           "that boards did not take while they climbed; null without smoothing");
  d.output("battery_given_j", &HallGridView::battery_given_j, "J",
           "by the battery in the span; null without smoothing");
  d.output("battery_taken_j", &HallGridView::battery_taken_j, "J",
           "by the battery in the span; null without smoothing");
  d.output("battery_lost_j", &HallGridView::battery_lost_j, "J", "in the battery; null without smoothing");
  d.output("battery_swing_j", &HallGridView::battery_swing_j, "J", "capacity that it uses; null without smoothing");
  d.output("capacitor_swing_j", &HallGridView::capacitor_swing_j, "J",
           "energy that capacitors must hold; null without smoothing");
}

void HallAnswer::describe(Outputs<HallAnswer>& d) {
  d.computed(
      "trainwatt", [](const HallAnswer&) { return std::string(version()); }, "", "version");
  d.output("hall", &HallAnswer::hall, "", "name");
  d.output("inputs_sha256", &HallAnswer::inputs_sha256, "", "of the effective inputs, without the scenarios");
  d.output("currency", &HallAnswer::currency, "", "of all money; null without a price").null_if_empty();
  d.output("rules", &HallAnswer::rules, "", "by which shares of jobs are made");
  d.output("kinds", &HallAnswer::kinds, "", "what jobs do under each cap");
  d.output("", &HallAnswer::outcome);
  d.output("grid", &HallAnswer::grid, "", "power inside the steps as the utility sees it; null when no job has a step");
  d.output("runs", &HallAnswer::runs, "1", "seeds").whole();
  d.output("series_of_runs", &HallAnswer::series_of_runs, "", "over the seeds, by key");
  d.output("warnings", &HallAnswer::warnings, "", "what a reader has to know");
}

}  // namespace tw
