#include "study/result_warnings.hpp"

#include <fmt/format.h>

#include "facility/facility.hpp"
#include "network/process.hpp"
#include "power/network_rule.hpp"
#include "study/fitting_plans.hpp"
#include "study/power_study.hpp"
#include "study/run_study.hpp"

namespace tw {
namespace {

void warn_about_site(Result& r, const LoadedScenario& loaded, const PowerRun& power) {
  const Site& site = loaded.scenario.site;
  if (!site.price && !loaded.site_series.price_per_kwh)
    r.warnings.push_back(fmt::format("{} has no price of energy: no cost is given", site.name));
  const auto start = parse_time(loaded.scenario.run.start, parse_utc_offset(site.utc_offset));
  for (std::string& remark :
       series_remarks(site, loaded.site_series, start ? std::optional(start->utc_s) : std::nullopt, power.duration_s()))
    r.warnings.push_back(std::move(remark));
  // A PUE covers all that is lost between the grid and its base; what the stages lose by their own data must fit in.
  if (!r.grid.grid_j || !r.energy.facility_j) return;
  const double fed_j = *r.grid.grid_j + r.energy.network_j.value_or(0);
  if (*r.energy.facility_j < fed_j * (1 - 1e-9))
    r.warnings.push_back(
        fmt::format("the building takes {:.4g} kWh by its PUE of {}, less than the {:.4g} kWh that nodes, network and "
                    "the losses of "
                    "the power delivery take: PUE and losses do not belong together",
                    *r.energy.facility_j / joules_per_kwh, site.pue, fed_j / joules_per_kwh));
}

// Settings made for nodes do otherwise in racks, and the other way round; which they are only the profile knows.
void warn_about_release(Result& r, const Scenario& s) {
  const bool racks = s.cluster.node.nvlink.nodes > 1;
  if (s.software.recipes_of == RecipesOf::any || racks == (s.software.recipes_of == RecipesOf::racks)) return;
  r.warnings.push_back(fmt::format(
      "{}: its settings are those of recipes for {}, and {} has {}; its source says what others set (recipes_of)",
      s.software.name, racks ? "nodes where NVLink ends" : "racks whose nodes NVLink joins", s.cluster.name,
      racks ? "racks whose nodes it joins" : "nodes where it ends"));
}

}  // namespace

void warn_about(Result& r, const LoadedScenario& loaded, const PowerRun& power) {
  const Scenario& s = loaded.scenario;
  warn_about_site(r, loaded, power);
  warn_about_release(r, s);
  const Accelerator& a = s.cluster.node.accelerator;
  if (!a.transferred_from.empty())
    r.warnings.push_back(
        fmt::format("{}: efficiencies are transferred from {}, not measured", a.name, a.transferred_from));
  const CollectiveLibrary& library = library_of(s.software, a);
  if (s.software.collectives && s.software.collectives->name != library.name)
    r.warnings.push_back(fmt::format("{} of {} does not drive {}: exchanges are those of {}",
                                     s.software.collectives->name, s.software.name, a.name, library.name));
  for (const std::string& what : r.grid.failures) r.warnings.push_back("power failure: " + what);
  const HostNoise& noise = s.cluster.hosts.noise;
  if (s.plan.nodes > 1 && noise.host_sigma <= 0 && noise.device_sigma <= 0 && noise.stalls_per_hour <= 0)
    r.warnings.push_back(
        fmt::format("{}: its hosts have no noise, so steps of many nodes come out too short", s.cluster.name));
  if (noise.stalls_per_hour > 0 && noise.stall_mean.value() <= 0)
    r.warnings.push_back(fmt::format("{}: stalls without a length (stall_mean) change nothing", s.cluster.name));
  if (*s.network_rule != s.cluster.fabric.network_rule &&
      !rule_defined(s.cluster.fabric.network_rule, s.cluster.fabric))
    r.warnings.push_back(fmt::format("network power by {}: the cluster's rule, {}, is undefined for this fabric",
                                     choice_name(*s.network_rule), choice_name(s.cluster.fabric.network_rule)));
  // A rule may charge ports of the whole fabric for a small job, which a planner would not expect.
  if (const double nodes_w = r.power.mean.value_or(0) * s.plan.nodes; r.power.network_w.value_or(0) > nodes_w)
    r.warnings.push_back(
        fmt::format("network power by {} is {:.1f} kW for nodes that draw {:.1f} kW: most of the energy is the rule's "
                    "share of switches; network_rule names others",
                    choice_name(*s.network_rule), *r.power.network_w / 1e3, nodes_w / 1e3));
  if (r.run.stopped_at_s)
    r.warnings.push_back(fmt::format(
        "the job stopped at {:.4g} s, before its target, after {:.0f} of {:.0f} samples: it has no time to train; its "
        "energy is that up to then",
        *r.run.stopped_at_s, r.run.samples.value_or(0), r.run.target_samples.value_or(0)));
  if (r.series_of_runs.finished < r.series_of_runs.count)
    r.warnings.push_back(fmt::format("{} of {} runs stopped before their target: together they have no time to train",
                                     r.series_of_runs.count - r.series_of_runs.finished, r.series_of_runs.count));
  // The law between cap and speed is fitted at one limit; nothing was measured below it.
  if (a.board_limit < a.power.fitted_limit)
    r.warnings.push_back(fmt::format(
        "time and power under a cap of {} are an estimate: below {} kernels lengthen with the dynamic power that is "
        "left to the -{:.2f}, {}",
        to_text(a.board_limit), to_text(a.power.fitted_limit),
        a.power.limiter ? a.power.limiter->clock_exponent : a.power.throttle_exponent,
        a.power.limiter ? "as the limiter's clock was seen to go" : "fitted on burst against sustained rates there"));
  if (const double mfu = r.step.mfu.value_or(0); mfu > 1)
    r.warnings.push_back(fmt::format(
        "an MFU of {:.2f} cannot be: the peaks of {} and its measured kernels do not belong together", mfu, a.name));
  if (s.network && s.plan.tp > s.cluster.node.gpus * s.cluster.node.nvlink.nodes)
    r.warnings.push_back(
        fmt::format("tensor parallelism of {} leaves the NVLink domain of {} GPUs: every layer waits "
                    "for the fabric",
                    s.plan.tp, s.cluster.node.gpus * s.cluster.node.nvlink.nodes));
  if (s.network && s.plan.layout.empty() && s.network->layers % (s.plan.pp * s.plan.vp) != 0)
    r.warnings.push_back(
        fmt::format("{} layers do not divide into {} chunks: uneven stages", s.network->layers, s.plan.pp * s.plan.vp));
}

}  // namespace tw
