// A hall as its file says it (scenarios/halls/*.json): clusters, site, jobs, budget.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "facility/site.hpp"
#include "hall/hall_plan.hpp"
#include "power/grid_limits.hpp"
#include "topology/cluster.hpp"

namespace tw {

namespace hall {

enum class Keep { cap, pause };

struct HallCluster {
  std::string name;
  tw::Cluster cluster;
  int spares = 0;
  Time node_mtbf, repair = seconds(86400);
  std::optional<NetworkRule> network_rule;
  static void describe(Description<HallCluster>& d);
};

// What a node does under a limit of its boards, for a job without a scenario.
struct GivenPoint {
  Power cap;
  double slowdown = 1;
  Power node_power;
  static void describe(Description<GivenPoint>& d);
};

struct HallJob {
  std::string name, cluster, scenario;
  std::vector<std::string> set;
  std::vector<Power> caps;
  // Instead of a scenario:
  int nodes = 0;
  Time duration;
  Power node_power;
  std::vector<GivenPoint> points;
  double tokens = 0;
  // Both:
  std::optional<Time> start_up;
  std::optional<Power> start_up_power;
  Time checkpoint, checkpoint_write;
  Time arrival, every;
  int count = 1;
  bool random = false;
  int priority = 0;
  std::optional<Time> deadline;
  std::optional<CarbonIntensity> carbon_below;
  std::optional<EnergyPrice> price_below;
  static void describe(Description<HallJob>& d);
};

struct BudgetInput {
  std::optional<Power> power;
  std::vector<Power> hourly;
  std::string signal;
  std::vector<Keep> keep;
  static void describe(Description<BudgetInput>& d);
};

struct CoolingInput {
  Power fixed;
  double proportional = 0, per_degree = 0;
  Temperature above;
  std::string weather;
  Temperature outside;
  double water_l_per_kwh = 0;
  std::optional<Temperature> water_above;
  std::string source;
  static void describe(Description<CoolingInput>& d);
};

struct MaintenanceInput {
  std::string cluster;
  int first = 0, count = 1;
  Time at, lasts;
  static void describe(Description<MaintenanceInput>& d);
};

struct OutageInput {
  Time at, lasts;
  static void describe(Description<OutageInput>& d);
};

struct MoneyInput {
  std::map<std::string, Money> node;  // by cluster
  Money network_switch, cable;
  double years = 5;
  Money demand_charge;  // a kW and month
  std::string source;
  static void describe(Description<MoneyInput>& d);
};

struct EmbodiedInput {
  std::map<std::string, CarbonMass> node;
  CarbonMass network_switch;
  double years = 5;
  std::string source;
  static void describe(Description<EmbodiedInput>& d);
};

struct HallInput {
  std::string name, description, start;
  std::optional<Time> lasts;
  Site site;
  std::vector<HallCluster> clusters;
  std::vector<HallJob> jobs;
  Queue queue = Queue::backfill;
  bool preempt = false;
  Placing placement = Placing::packed;
  std::optional<BudgetInput> budget;
  std::optional<BatteryProfile> battery;
  std::optional<CoolingInput> cooling;
  std::vector<MaintenanceInput> maintenance;
  std::vector<OutageInput> outages;
  std::optional<MoneyInput> money;
  std::optional<EmbodiedInput> embodied;
  std::optional<GridLimits> grid_limits;
  std::optional<Smoothing> smoothing;
  static void describe(Description<HallInput>& d);
};

}  // namespace hall

}  // namespace tw
