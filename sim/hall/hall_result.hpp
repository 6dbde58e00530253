// What a hall answers. SI units unless the unit says otherwise; described in hall_outputs.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tw {
template <class T>
class Outputs;  // core/outputs.hpp
}

namespace tw::hall {

using Maybe = std::optional<double>;

// Joules by part. Of the hall: as metered. Of a job: its nodes, and its shares by the rules that the result names.
struct Joules {
  double nodes_j = 0, idle_j = 0, loss_j = 0, network_j = 0, cooling_j = 0;
  double stored_j = 0;  // in the battery at the end, less at the beginning
  double total() const { return nodes_j + idle_j + loss_j + network_j + cooling_j + stored_j; }
  static void describe(Outputs<Joules>& d);
};

struct JobOutcome {
  std::string name, kind, cluster, state;  // state: finished, running, waiting
  int nodes = 0, priority = 0;
  double arrival_s = 0;
  Maybe start_s, end_s;
  double wait_s = 0;                        // all of it, before the first start and between
  std::map<std::string, double> wait_by_s;  // by reason
  double run_s = 0;                         // on nodes
  double capped_s = 0;                      // of it under a cap
  double lost_s = 0;                        // work done again
  double links_s = 0;                       // longer by what others do on its links
  int failures = 0, pauses = 0;
  std::optional<bool> in_time;  // null without a deadline
  Joules energy;
  double energy_j = 0;  // their sum
  double network_share = 0;
  double kg_co2e = 0, water_l = 0;
  Maybe cost_energy, cost_demand, cost_capital, cost, cost_per_million_tokens, kwh_per_million_tokens;
  Maybe embodied_kg_co2e;
  double tokens = 0;
  double node_s = 0, useful_node_s = 0;
  static void describe(Outputs<JobOutcome>& d);
};

// Watts between two changes of anything.
struct Moment {
  double time_s = 0;
  double jobs_w = 0, idle_w = 0, loss_w = 0, network_w = 0, cooling_w = 0, battery_w = 0, feed_w = 0;
  double limit_w = 0, charge_j = 0;
  int waiting = 0, running = 0;
};

// A job on its nodes, under one cap.
struct Stay {
  int job = 0;
  double from_s = 0, to_s = 0;
  double cap_w = 0;  // 0: none
  std::string what;  // start-up, run
  int first_node = 0;
};

struct HallOutcome {
  uint64_t seed = 1;
  double end_s = 0;
  std::vector<JobOutcome> jobs;
  Joules energy;
  double feed_j = 0, books_error = 0;  // of the sum of the parts against the feed, as a share
  double utilisation = 0, goodput = 0;
  double peak_w = 0, mean_w = 0, above_limit_s = 0, above_limit_j = 0;
  double dark_s = 0;  // without power
  Maybe pue, wue_l_per_kwh;
  double water_l = 0, kg_co2e = 0;
  double battery_given_j = 0, battery_taken_j = 0;
  Maybe battery_charge_j;
  int node_failures = 0, finished = 0;
  double wait_mean_s = 0;
  Maybe cost_energy, cost_demand, cost_capital, embodied_kg_co2e;
  Maybe demand_w;  // highest mean of 15 minutes
  std::vector<double> demand_by_month_w;
  static void describe(Outputs<HallOutcome>& d);

  std::vector<Moment> power;  // beyond the JSON: for the table and the figure
  std::vector<Stay> stays;
  std::vector<std::string> late_for_service;  // jobs without checkpoints that kept nodes that were due for maintenance
};

}  // namespace tw::hall
