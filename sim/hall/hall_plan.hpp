// A hall in numbers: what the events need to know, whatever said it. SI units; times count from the hall's start.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "hall/step_series.hpp"
#include "power/loss_law.hpp"
#include "power/stage.hpp"

namespace tw {
template <class T>
class Outputs;  // core/outputs.hpp
}

namespace tw::hall {

// A number of a node, job or cluster as an index.
constexpr size_t at(int i) {
  return static_cast<size_t>(i);
}

constexpr double kNever = std::numeric_limits<double>::infinity();

// A job whose uplinks give 1 / squeeze of their bandwidth: time over that with all of it, and a node's watts.
struct LinkPoint {
  double squeeze = 1;
  double slowdown = 1;
  double node_w = 0;
  static void describe(Outputs<LinkPoint>& d);
};

// A job under one limit of its boards: how much longer its work takes, and what a node then draws.
struct CapPoint {
  double cap_w = 0;  // 0: the board's own limit
  double slowdown = 1;
  double node_w = 0;               // DC, mean over the run
  std::vector<LinkPoint> links{};  // rising squeeze, first 1; empty: what others do on its links is nothing to it
  double highest_w = 0;            // of its phases; 0: as node_w
};

struct Job {
  std::string name;
  std::string kind;  // the entry of the hall's file that it comes from
  int cluster = 0, nodes = 1;
  double arrival_s = 0;
  int priority = 0;  // higher goes first and is capped last
  double deadline_s = kNever;
  double work_s = 0;                     // at the first point, without start-up and checkpoints
  double start_up_s = 0;                 // before any work, and again after a failure or a pause
  double start_up_w = 0;                 // of a node meanwhile
  double checkpoint_s = 0, write_s = 0;  // work between two, time of one; 0: none
  std::vector<CapPoint> points;          // falling watts; the first is without a cap
  double carbon_below = kNever,
         price_below = kNever;  // it waits for them, kg/J and money/J, until the deadline presses
  double tokens = 0;
};

// A stage of the power delivery of a cluster, unit by unit: buses with their rectifiers, then what stands above them.
struct RatedStage {
  std::string kind;
  double rating_w = 0;       // of a unit, at its output
  LossLaw law;               // of a unit
  std::vector<int> unit_of;  // of each unit of the stage below; of each node where this is the bus
};

struct Cluster {
  std::string name;
  int nodes = 0;
  int spares = 0;                 // kept for jobs that a failure has stopped
  std::vector<int> unit;          // of each node; empty: one unit
  double uplink_nodes = kNever;   // of a unit, whose adapters its uplinks can carry
  double idle_w = 0;              // DC of a node that is on and has no job
  double network_w = 0;           // of all its switches
  LossLaw rectifiers;             // of all its buses together
  std::vector<LossLaw> upstream;  // PDU, UPS ...: all units of a stage together, from the buses up
  std::vector<RatedStage> rated;  // the same stages; none: nothing is held to a rating
  double node_mtbf_s = kNever, repair_s = 0;
  int switches = 0, cables = 0;  // of its network
};

// Watts of the switches charged to each job of a cluster, from the nodes that they hold.
using NetworkShares = std::function<std::vector<double>(int cluster, const std::vector<const std::vector<int>*>& jobs)>;

// Cooling and the rest of the building: fixed + (proportional + per_degree * (outside - above)) * all that is cooled,
// losses included. With `of_pue` it is what a site's PUE leaves: proportional * base less the losses above the base,
// which a PUE covers.
struct Cooling {
  double fixed_w = 0, proportional = 0, per_degree = 0, above_c = 0;
  bool of_pue = false;
  bool dc_base = false;                                 // the PUE is stated on DC, not on AC at the rectifiers
  double water_l_per_kwh = 0, water_above_c = -kNever;  // of IT energy, in hours warmer than that
};

enum class Queue { first_come, backfill, priority };
enum class Placing { packed, spread, units };

struct Window {  // nodes that are taken out of service
  int cluster = 0;
  std::vector<int> nodes;
  double from_s = 0, to_s = 0;
};

struct HallPlan {
  std::vector<Cluster> clusters;
  std::vector<Job> jobs;
  Queue queue = Queue::first_come;
  bool preempt = false;  // lower priorities give their nodes to higher ones, at their next checkpoint
  Placing placing = Placing::packed;
  StepSeries limit_w{kNever};          // at the feed
  bool cap = false, pause = false;     // what may be done to keep it beside waiting
  std::optional<BatteryType> battery;  // at the feed; its shave_above_w is the limit
  Cooling cooling;
  StepSeries outside_c{20}, carbon_kg_per_j{0}, price_per_j{0};
  std::vector<Window> maintenance;
  std::vector<Outage> outages;   // of the feed
  double end_s = kNever;         // the hall is looked at until then; else until its last job ends
  NetworkShares network_shares;  // absent: by nodes
};

}  // namespace tw::hall
