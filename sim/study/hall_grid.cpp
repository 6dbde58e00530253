// What the utility sees of a hall, and the described outputs of its answer.
#include <algorithm>
#include <cmath>

#include "core/outputs.hpp"
#include "core/random.hpp"
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

}  // namespace

std::optional<HallGridView> hall_grid_view(const LoadedHall& loaded, const std::vector<HallKindResult>& kinds,
                                           const hall::HallPlan& plan, const hall::HallOutcome& out) {
  if (out.power.empty()) return std::nullopt;
  const auto top = std::max_element(out.power.begin(), out.power.end(),
                                    [](const hall::Moment& a, const hall::Moment& b) { return a.jobs_w < b.jobs_w; });
  HallGridView view;
  view.at_s = top->time_s;
  struct Member {
    const StepPower* step;
    double factor;
    int job;
  };
  std::vector<Member> members;
  double longest_s = 0, steady_w = top->feed_w;
  for (const hall::Stay& stay : out.stays) {
    if (stay.from_s > view.at_s || stay.to_s <= view.at_s || stay.what != "run") continue;
    const hall::Job& job = plan.jobs[static_cast<size_t>(stay.job)];
    for (const HallKindResult& kind : kinds)
      for (size_t k = 0; k < kind.step.size() && kind.name == job.kind; ++k) {
        const StepPower& step = kind.step[k];
        if (kind.caps[k].cap_w != stay.cap_w || step.begin_s.empty()) continue;
        // Cooling does not follow a step; rectifiers do.
        const double factor = job.nodes * (1 + plan.clusters[static_cast<size_t>(job.cluster)].rectifiers.proportional);
        members.push_back({&step, factor, stay.job});
        longest_s = std::max(longest_s, step.end_s - step.begin_s.front());
        steady_w -= step.mean_w() * factor;
      }
  }
  if (members.empty()) return std::nullopt;
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
  d.output("at_s", &HallGridView::at_s, "s", "moment of the highest power of jobs");
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
      "trainwatt", [](const HallAnswer&) { return std::string(TW_VERSION); }, "", "version");
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
