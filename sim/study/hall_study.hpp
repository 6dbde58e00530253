// A hall from its file to its answers: loads it, simulates what its jobs do under each cap, plays the events, asks what
// the utility sees, counts money.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hall/hall.hpp"
#include "hall/hall_input.hpp"
#include "power/step_power.hpp"
#include "study/result.hpp"
#include "study/scenario.hpp"

namespace tw {

// An entry of the hall's jobs that passed every check, with its scenario under each cap; without one: as given.
struct HallKind {
  size_t entry = 0;  // of the hall's jobs
  int cluster = 0;
  std::vector<double> cap_w;             // 0 first: the board's own limit
  std::vector<double> squeeze{1};        // uplinks of 1 / that of their bandwidth, as others on them leave
  std::vector<LoadedScenario> scenario;  // one a cap and squeeze, those of a cap together
};

// An hourly series of a hall whose end is not known before its last job is done.
struct SeriesCover {
  std::string what, from, to;
  double until_s = 0;  // from the hall's start
};

struct LoadedHall {
  hall::HallInput input;
  std::vector<HallKind> kinds;
  hall::StepSeries limit_w{hall::kNever}, outside_c, carbon_kg_per_j, price_per_j;
  bool priced = false;
  std::string currency, file, sha256;
  std::vector<std::string> warnings;
  std::vector<SeriesCover> covers;
};

// All faults go to `faults`; the value is then not to be used.
LoadedHall load_hall(const std::string& file, const std::vector<std::string>& overrides, Faults& faults);

// A series that ends before the hall is what the site's `series_gaps` says: InputError, or a remark that its last value
// is held.
std::vector<std::string> check_covers(const LoadedHall& loaded, double end_s);

// What a job of a kind does under a cap.
struct HallLaw {
  double cap_w = 0, work_s = 0, slowdown = 1, node_w = 0;
  Maybe step_s;
  std::vector<hall::LinkPoint> links;  // with narrower uplinks
  double highest_w = 0;                // a node in the run's highest phase; 0: as node_w
  static void describe(Outputs<HallLaw>& d);
};
struct HallKindResult {
  std::string name, scenario;
  int nodes = 0;
  double start_up_s = 0, start_up_w = 0, tokens = 0;
  std::vector<HallLaw> caps;
  std::vector<StepPower> step;  // one a cap, of a node; none for jobs without a scenario
  static void describe(Outputs<HallKindResult>& d);
};

// The hall's power inside the steps, at the moment of its highest mean.
struct HallGridView {
  double at_s = 0, span_s = 0;
  GridAnswer before, after;
  Maybe burned_j, withheld_j, battery_given_j, battery_taken_j, battery_lost_j, battery_swing_j, capacitor_swing_j;
  std::vector<SpectrumLine> lines_before, lines_after;  // for the table and the figure, as the curves
  Curve curve_before, curve_after;
  static void describe(Outputs<HallGridView>& d);
};

struct HallAnswer {
  std::string hall, inputs_sha256, currency;
  std::vector<HallKindResult> kinds;
  std::map<std::string, std::string> rules;  // by which shares are made
  hall::HallOutcome outcome;                 // of the first seed
  int runs = 1;
  std::map<std::string, Spread> series_of_runs;
  std::optional<HallGridView> grid;
  std::vector<std::string> warnings;
  static void describe(Outputs<HallAnswer>& d);
};

struct HallOptions {
  uint64_t seed = 1;
  int runs = 1, jobs = 1;
  double deadline_s = 0;
};

// Throws DoesNotFit and SimulationError, one line each.
HallAnswer simulate_hall(const LoadedHall& loaded, const HallOptions& options,
                         const std::function<void(size_t done, size_t all)>& progress);

// Nodes of a unit whose adapters its uplinks can carry; kNever where they carry all, or there are no units.
double uplink_nodes(const Cluster& cluster);

// The hall in numbers, for one seed of random arrivals.
hall::HallPlan hall_plan(const LoadedHall& loaded, const std::vector<HallKindResult>& kinds, uint64_t seed);

// What the utility sees: the steps of the jobs that run at the moment of the highest mean, each from a random phase.
std::optional<HallGridView> hall_grid_view(const LoadedHall& loaded, const std::vector<HallKindResult>& kinds,
                                           const hall::HallPlan& plan, const hall::HallOutcome& outcome);
// Limits of the grid that the view could not be held against.
std::vector<std::string> grid_remarks(const LoadedHall& loaded, const std::optional<HallGridView>& view);
// What N seeds say together, by key.
std::map<std::string, Spread> hall_spreads(const std::vector<hall::HallOutcome>& runs);
// Capital, demand charge and embodied carbon, by the file's own figures.
void count_money(const LoadedHall& loaded, const hall::HallPlan& plan, hall::HallOutcome& out);

}  // namespace tw
