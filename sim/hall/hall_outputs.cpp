#include "core/outputs.hpp"
#include "hall/hall_plan.hpp"
#include "hall/hall_result.hpp"

namespace tw::hall {

void Joules::describe(Outputs<Joules>& d) {
  d.output("nodes_j", &Joules::nodes_j, "J", "nodes that hold jobs, DC");
  d.output("idle_j", &Joules::idle_j, "J",
           "of the hall: nodes that are on without a job, DC; of a job: its share of all that idle nodes take from the "
           "feed, by node-seconds");
  d.output("loss_j", &Joules::loss_j, "J", "rectifiers, stages above them and battery, in proportion to DC watts");
  d.output("network_j", &Joules::network_j, "J", "switches; of a job: by the cluster's network rule");
  d.output("cooling_j", &Joules::cooling_j, "J",
           "cooling and the rest of the building, in proportion to what is cooled");
  d.output("stored_j", &Joules::stored_j, "J", "in the battery at the end less at the beginning");
}

void JobOutcome::describe(Outputs<JobOutcome>& d) {
  d.output("name", &JobOutcome::name, "", "the job");
  d.output("kind", &JobOutcome::kind, "", "the entry of the hall's file that it comes from");
  d.output("cluster", &JobOutcome::cluster, "", "where it runs");
  d.output("state", &JobOutcome::state, "", "at the end: finished, running, waiting, to come");
  d.output("nodes", &JobOutcome::nodes, "1", "nodes").whole();
  d.output("priority", &JobOutcome::priority, "1", "higher goes first").whole();
  d.output("arrival_s", &JobOutcome::arrival_s, "s", "it joins the queue");
  d.output("start_s", &JobOutcome::start_s, "s", "its first start; null: none");
  d.output("end_s", &JobOutcome::end_s, "s", "its end; null: not inside the hall's time");
  d.output("wait_s", &JobOutcome::wait_s, "s", "waiting, before its first start and after");
  d.output(
      "wait_by_s", &JobOutcome::wait_by_s, "s",
      "the same by reason: nodes, placement, power, queue (behind another), carbon, price, failure, paused, outage");
  d.output("run_s", &JobOutcome::run_s, "s", "on nodes");
  d.output("capped_s", &JobOutcome::capped_s, "s", "of it under a cap");
  d.output("links_s", &JobOutcome::links_s, "s", "longer by what other jobs do on its links");
  d.output("lost_s", &JobOutcome::lost_s, "s", "work lost to failures, at full speed");
  d.output("failures", &JobOutcome::failures, "1", "that stopped it").whole();
  d.output("pauses", &JobOutcome::pauses, "1", "at checkpoints").whole();
  d.output("in_time", &JobOutcome::in_time, "",
           "done by its deadline; null: it has none, or that is beyond the hall's time");
  d.output("energy", &JobOutcome::energy);
  d.output("energy_j", &JobOutcome::energy_j, "J", "at the feed, all shares; the jobs add up to the meter");
  d.output("network_share", &JobOutcome::network_share, "1", "of the switches in its energy");
  d.output("kg_co2e", &JobOutcome::kg_co2e, "kg", "of its energy, hour by hour");
  d.output("embodied_kg_co2e", &JobOutcome::embodied_kg_co2e, "kg",
           "its node-seconds of what making the hardware emitted; null without a sourced value");
  d.output("water_l", &JobOutcome::water_l, "l", "its share of the water, by energy");
  d.output("cost_energy", &JobOutcome::cost_energy, "", "of its energy, in the site's currency; null without a price");
  d.output("cost_demand", &JobOutcome::cost_demand, "", "its share of the demand charge, by energy; null without one");
  d.output("cost_capital", &JobOutcome::cost_capital, "",
           "its node-seconds of nodes and switches; null without prices");
  d.output("cost", &JobOutcome::cost, "", "all that is known of these; null when none is");
  d.output("cost_per_million_tokens", &JobOutcome::cost_per_million_tokens, "",
           "cost over tokens; null before its end or without tokens");
  d.output("kwh_per_million_tokens", &JobOutcome::kwh_per_million_tokens, "kWh", "energy over tokens; null as above");
  d.output("tokens", &JobOutcome::tokens, "1", "that it trains on; 0: not known");
  d.output("node_s", &JobOutcome::node_s, "s", "nodes times time held");
  d.output("useful_node_s", &JobOutcome::useful_node_s, "s", "nodes times work done and kept, at full speed");
}

void HallOutcome::describe(Outputs<HallOutcome>& d) {
  d.output("seed", &HallOutcome::seed, "", "of failures and random arrivals");
  d.output("end_s", &HallOutcome::end_s, "s", "time looked at");
  d.output("finished", &HallOutcome::finished, "1", "jobs done").whole();
  d.output("energy", &HallOutcome::energy);
  d.output("feed_j", &HallOutcome::feed_j, "J", "energy at the feed, metered");
  d.output("books_error", &HallOutcome::books_error, "1", "sum of the parts against the feed");
  d.output("mean_w", &HallOutcome::mean_w, "W", "mean power at the feed");
  d.output("peak_w", &HallOutcome::peak_w, "W", "highest power at the feed");
  d.output("above_limit_s", &HallOutcome::above_limit_s, "s", "time above the power budget");
  d.output("above_limit_j", &HallOutcome::above_limit_j, "J", "energy above the power budget");
  d.output("dark_s", &HallOutcome::dark_s, "s", "without feed and battery");
  d.output("utilisation", &HallOutcome::utilisation, "1", "node-seconds held by jobs over all");
  d.output("goodput", &HallOutcome::goodput, "1", "work done and kept, at full speed, over node-seconds held");
  d.output("wait_mean_s", &HallOutcome::wait_mean_s, "s", "mean wait of a job");
  d.output("node_failures", &HallOutcome::node_failures, "1", "nodes that failed").whole();
  d.output("pue", &HallOutcome::pue, "1", "feed over the base that the site states its PUE on; null without any");
  d.output("water_l", &HallOutcome::water_l, "l", "water");
  d.output("wue_l_per_kwh", &HallOutcome::wue_l_per_kwh, "l/kWh",
           "water over energy of nodes and switches; null when not given");
  d.output("kg_co2e", &HallOutcome::kg_co2e, "kg", "CO2e of the feed's energy, hour by hour");
  d.output("embodied_kg_co2e", &HallOutcome::embodied_kg_co2e, "kg",
           "CO2e of making the hardware, its part of the life; null without a sourced value");
  d.output("cost_energy", &HallOutcome::cost_energy, "",
           "cost of energy, in the site's currency; null without a price");
  d.output("demand_w", &HallOutcome::demand_w, "W", "highest mean of a quarter of an hour");
  d.output("demand_by_month_w", &HallOutcome::demand_by_month_w, "W", "the same in each 30 days");
  d.output("cost_demand", &HallOutcome::cost_demand, "", "demand charge; null without one");
  d.output("cost_capital", &HallOutcome::cost_capital, "",
           "capital of nodes and switches, their part of the life; null without prices");
  d.output("battery_given_j", &HallOutcome::battery_given_j, "J", "given by the battery");
  d.output("battery_taken_j", &HallOutcome::battery_taken_j, "J", "taken by the battery");
  d.output("battery_charge_j", &HallOutcome::battery_charge_j, "J",
           "charge of the battery at the end; null without one");
  d.output("jobs", &HallOutcome::jobs, "", "one by one");
}

void LinkPoint::describe(Outputs<LinkPoint>& d) {
  d.output("squeeze", &LinkPoint::squeeze, "1", "uplinks give 1 / that of their bandwidth");
  d.output("slowdown", &LinkPoint::slowdown, "1", "time over that with all of it");
  d.output("node_w", &LinkPoint::node_w, "W", "a node on its DC bus, mean over the run");
}

}  // namespace tw::hall
