#include "hall/hall_input.hpp"

#include "core/codec.hpp"

namespace tw {

namespace hall {

void HallCluster::describe(Description<HallCluster>& d) {
  d.object("hall_cluster", "A cluster of a hall.");
  d.required("name", &HallCluster::name, "by which jobs name it");
  d.required("cluster", &HallCluster::cluster, "the cluster; the steps of its jobs are simulated on it");
  d.optional("spares", &HallCluster::spares, "nodes kept for jobs that a failure has stopped");
  d.optional("node_mtbf", &HallCluster::node_mtbf, "mean time between failures of a node; 0: none fails");
  d.optional("repair", &HallCluster::repair, "until a failed node is back");
  d.optional("network_rule", &HallCluster::network_rule,
             "how switch power is apportioned to jobs (default: the cluster's rule, where that is defined without "
             "their traffic)");
}

void GivenPoint::describe(Description<GivenPoint>& d) {
  d.object("hall_point", "A job under a limit of its boards.");
  d.required("cap", &GivenPoint::cap, "limit of a board", above(0));
  d.required("slowdown", &GivenPoint::slowdown, "time over that without a cap", between(1, 100));
  d.required("node_power", &GivenPoint::node_power, "DC power of a node, mean", above(0));
}

void HallJob::describe(Description<HallJob>& d) {
  d.object("hall_job", "A job of a hall, or a series of them: a simulated scenario, or a given duration and power.");
  d.required("name", &HallJob::name, "name");
  d.optional("cluster", &HallJob::cluster, "where it runs (default: the hall's first cluster)");
  d.optional("scenario", &HallJob::scenario, "what runs; its cluster is the hall's");
  d.optional("set", &HallJob::set, "overrides of the scenario, \"/plan/nodes=4\"");
  d.optional("caps", &HallJob::caps, "limits of a board that the hall may set; the run is simulated under each");
  d.optional("nodes", &HallJob::nodes, "nodes, without a scenario", between(0, 1e6));
  d.optional("duration", &HallJob::duration, "time of its work without a cap, without a scenario");
  d.optional("node_power", &HallJob::node_power, "DC power of a node meanwhile, mean, without a scenario");
  d.optional("points", &HallJob::points, "what caps do to it, falling, without a scenario");
  d.optional("tokens", &HallJob::tokens, "that it trains on, without a scenario");
  d.optional("start_up", &HallJob::start_up,
             "before any work, and again after a failure or pause (default: the scenario's, else none)");
  d.optional("start_up_power", &HallJob::start_up_power,
             "DC power of a node meanwhile (default: the scenario's waits, else an idle node)");
  d.optional("checkpoint", &HallJob::checkpoint, "work between two checkpoints; 0: none");
  d.optional("checkpoint_write", &HallJob::checkpoint_write, "time that a checkpoint stops the work");
  d.optional("arrival", &HallJob::arrival, "of the first, from the hall's start");
  d.optional("every", &HallJob::every, "between two arrivals");
  d.optional("count", &HallJob::count, "how many", between(1, 1e6));
  d.optional("random", &HallJob::random, "arrivals at random, `every` apart in the mean (exponential, seeded)");
  d.optional("priority", &HallJob::priority, "higher goes first and is capped last", between(-1e6, 1e6));
  d.optional("deadline", &HallJob::deadline, "from arrival to end", above(0));
  d.optional("carbon_below", &HallJob::carbon_below,
             "it starts when the grid is cleaner than that, or when its deadline presses");
  d.optional("price_below", &HallJob::price_below,
             "it starts when energy is cheaper than that, or when its deadline presses");
}

void BudgetInput::describe(Description<BudgetInput>& d) {
  d.object("hall_budget",
           "The power that a hall may take at its feed: constant, by the hour of the day, or a signal. Kept by "
           "waiting, and by what `keep` allows.");
  d.optional("power", &BudgetInput::power, "constant", above(0));
  d.optional("hourly", &BudgetInput::hourly, "24 values, one for each hour of the day from the hall's start, repeated");
  d.optional("signal", &BudgetInput::signal, "CSV with columns time and limit_kw, one row an hour");
  d.optional("keep", &BudgetInput::keep,
             "cap: lower the clocks of the lowest priority; pause: stop the lowest at their next checkpoint");
}

void CoolingInput::describe(Description<CoolingInput>& d) {
  d.object("hall_cooling",
           "Cooling and the rest of the building by load and outside temperature, instead of the site's PUE.");
  d.optional("fixed", &CoolingInput::fixed, "whatever the load");
  d.optional("proportional", &CoolingInput::proportional, "of what is cooled, at AC", between(0, 10));
  d.optional("per_degree", &CoolingInput::per_degree, "more of it for each degree above `above`", between(0, 1));
  d.optional("above", &CoolingInput::above, "outside temperature up to which `proportional` holds", between(-60, 60));
  d.optional("weather", &CoolingInput::weather, "CSV with columns time and temperature_c, one row an hour");
  d.optional("outside", &CoolingInput::outside, "outside temperature without a weather file", between(-60, 60));
  d.optional("water_l_per_kwh", &CoolingInput::water_l_per_kwh, "water of a kWh of nodes and switches (WUE)");
  d.optional("water_above", &CoolingInput::water_above, "only while it is warmer outside than that (default: always)",
             between(-60, 60));
  d.optional("source", &CoolingInput::source, "where the numbers come from");
}

void MaintenanceInput::describe(Description<MaintenanceInput>& d) {
  d.object("hall_maintenance",
           "Nodes that are taken out of service for a while; jobs on them stop at their next checkpoint.");
  d.optional("cluster", &MaintenanceInput::cluster, "default: the hall's first cluster");
  d.required("first", &MaintenanceInput::first, "number of the first node");
  d.required("count", &MaintenanceInput::count, "nodes", between(1, 1e6));
  d.required("at", &MaintenanceInput::at, "from the hall's start");
  d.required("lasts", &MaintenanceInput::lasts, "how long", above(0));
}

void OutageInput::describe(Description<OutageInput>& d) {
  d.object("hall_outage", "The feed is dead for a while: the battery carries the hall, or every job is stopped.");
  d.required("at", &OutageInput::at, "from the hall's start");
  d.required("lasts", &OutageInput::lasts, "how long", above(0));
}

void MoneyInput::describe(Description<MoneyInput>& d) {
  d.object("hall_money", "What the hall costs beside its energy, in the currency of the site's price.");
  d.optional("node", &MoneyInput::node, "price of a node with its part of the rack, by cluster");
  d.optional("switch", &MoneyInput::network_switch, "price of a switch of the training network");
  d.optional("cable", &MoneyInput::cable, "price of a cable of the training network with its optics");
  d.optional("years", &MoneyInput::years, "over which they are written off, evenly", above(0));
  d.optional("demand_charge", &MoneyInput::demand_charge, "of a kW of the month's highest quarter of an hour");
  d.optional("source", &MoneyInput::source, "where the numbers come from");
}

void EmbodiedInput::describe(Description<EmbodiedInput>& d) {
  d.object("hall_embodied", "What making the hardware emitted. Only with a source.");
  d.required("node", &EmbodiedInput::node, "of a node, by cluster");
  d.optional("switch", &EmbodiedInput::network_switch, "of a switch");
  d.optional("years", &EmbodiedInput::years, "over which it is spread, evenly", above(0));
  d.required("source", &EmbodiedInput::source, "where the numbers come from");
}

void HallInput::describe(Description<HallInput>& d) {
  d.object("hall", "Many jobs in one hall, on one clock, below one power budget.");
  d.required("name", &HallInput::name, "name of the hall");
  d.optional("description", &HallInput::description, "what it shows");
  d.optional("start", &HallInput::start, "when it begins, for hourly series: \"2025-06-02T00:00+08:00\"");
  d.optional("lasts", &HallInput::lasts, "how long it is looked at (default: until its last job ends)", above(0));
  d.required("site", &HallInput::site, "the site");
  d.required("clusters", &HallInput::clusters, "what stands in it");
  d.required("jobs", &HallInput::jobs, "what runs in it");
  d.optional("queue", &HallInput::queue, "first_come; backfill (EASY, by priority and arrival); priority (strict)");
  d.optional("preempt", &HallInput::preempt,
             "jobs that wait for nodes take them from lower priorities, which stop at their next checkpoint");
  d.optional("placement", &HallInput::placement,
             "packed; spread over units; units: whole units that no other job shares");
  d.optional("budget", &HallInput::budget, "power at the feed (default: no limit)");
  d.optional("battery", &HallInput::battery,
             "at the feed: gives what is above the budget, carries the hall through outages");
  d.optional("cooling", &HallInput::cooling, "cooling by load and weather");
  d.optional("maintenance", &HallInput::maintenance, "nodes out of service");
  d.optional("outages", &HallInput::outages, "of the feed");
  d.optional("money", &HallInput::money, "capital and demand charge");
  d.optional("embodied", &HallInput::embodied, "embodied carbon");
  d.optional("grid_limits", &HallInput::grid_limits, "what the utility allows");
  d.optional("smoothing", &HallInput::smoothing, "what smooths the hall's power inside the steps");
}

}  // namespace hall
}  // namespace tw
