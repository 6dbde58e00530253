// A run's timeline turned into watts and joules: GPU, node, bus, rectifier, AC. Every change of power is integrated
// exactly where it happens; parts add up to their totals.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "power/node_power.hpp"
#include "power/piecewise.hpp"
#include "step/timeline.hpp"
#include "topology/cluster.hpp"

namespace tw {

template <class T>
class Outputs;  // core/outputs.hpp

// A part of the power delivery that did not work for some of the run.
struct FailedUnit {
  std::string part;  // "rectifier", "feed", or the kind of a stage above the shelves
  int unit = 0;      // bus of the cluster, or unit of the stage
  int count = 0;     // rectifiers of the bus
  double from_s = 0, to_s = 0;
  bool at(double time_s) const { return from_s <= time_s && time_s < to_s; }
  static void describe(Outputs<FailedUnit>& d);
};

struct PowerOptions {
  std::optional<Power> gpu_limit;  // an operator's cap; absent: the board's own limit
  uint64_t seed = 1;               // of the spread from board to board, if the node profile has any
  std::vector<FailedUnit> failures;
  static void describe(Outputs<PowerOptions>& d);
};

// One node of the job in the run window.
struct NodePowerRun {
  int node = 0;       // of the cluster
  int group = 0;      // of the timeline
  int bus = 0;        // index into PowerRun::buses
  double factor = 1;  // of this node's power against its group's (spread)
  double mean_w = 0, peak_w = 0, dc_j = 0;
};

// One bus that feeds nodes of the job. Its other nodes, if any, are off.
struct BusPowerRun {
  int bus = 0;             // of the cluster
  std::vector<int> nodes;  // of the cluster
  double mean_w = 0, peak_w = 0, peak_at_s = 0;
  double dc_j = 0, loss_j = 0, ac_j = 0;
  std::shared_ptr<const PiecewiseWatts> dc;  // through time; buses with the same load share it
  // What its rectifiers give: `dc`, less what a battery gives or with what it takes back.
  std::shared_ptr<const PiecewiseWatts> supply;
  double battery_j = 0;              // taken by the battery less given by it
  std::vector<FailedUnit> failures;  // rectifiers of this bus that are off, each span with its cause
  int rectifiers_on(const PowerDelivery& delivery, double time_s) const;
  // Loss of its rectifiers in a span of time, J.
  double loss_between_j(const PowerDelivery& delivery, double from_s, double to_s) const;
  // What they take from the grid through time.
  PiecewiseWatts ac(const PowerDelivery& delivery) const;

 private:
  // Spans of time with the same rectifiers on.
  struct Stretch {
    double from_s, to_s;
    int on;
  };
  std::vector<Stretch> stretches(const PowerDelivery& delivery, double from_s, double to_s) const;
};

// `supply` of a bus: its load through its battery, if the cluster has any.
std::shared_ptr<const PiecewiseWatts> supply_through_battery(const PowerDelivery& delivery, const BusPowerRun& bus);

// Joules by part of all nodes of the job; they add up to nodes_dc_j.
struct EnergyParts {
  ActivityTimes gpus;                    // by activity
  std::map<std::string, double> others;  // conversion, host, nvswitch, nics, fans
  double total() const;
};

struct PowerRun {
  double run_begin_s = 0, run_end_s = 0;
  std::vector<NodePowerRun> nodes;
  std::vector<BusPowerRun> buses;
  std::vector<FailedUnit> failures;
  EnergyParts parts;

  // Inside the run, whole job.
  double nodes_dc_j = 0, rectifier_loss_j = 0, nodes_ac_j = 0;
  double battery_j = 0;  // taken by the batteries of the buses less given by them

  // Watts of one node on its bus.
  double mean_w = 0, min_w = 0, max_w = 0;  // mean over nodes and run; least and greatest mean of a node
  double peak_w = 0;
  double idle_w = 0;                           // on, no job
  std::optional<double> steady_w;              // training before the first evaluation, mean over all nodes
  std::optional<double> train_w;               // whenever training steps run, mean over all nodes
  std::optional<double> wait_w, evaluation_w;  // of nodes that train
  std::optional<double> gpu_steady_w;          // one GPU of the nodes that train

  double peak_bus_w = 0;
  double headroom_w = 0;      // rating of a bus's rectifiers less its highest load
  double headroom_share = 0;  // the same over the rating

  std::vector<PiecewiseWatts> group_dc;  // one node of each group of the timeline
  double duration_s() const { return run_end_s - run_begin_s; }
  double node_w(size_t i, double time_s) const;
  double node_j(size_t i, double from_s, double to_s) const;
};

// Throws DoesNotFit, with place and time, when a bus asks for more than its rectifiers can give.
PowerRun integrate_power(const Cluster& cluster, const Timeline& timeline, const PowerOptions& options = {});

// The energies of integrate_power() alone, over any span of time, for series of many runs: no curves of buses, no
// ratings. Equal to 1e-12.
struct JobEnergy {
  double nodes_dc_j = 0;
  double rectifier_loss_j = 0;   // with what batteries of the buses took and have not given back
  std::map<int, double> node_j;  // by node of the cluster
  EnergyParts parts;             // inside the run, whatever the span
};
JobEnergy job_energy(const Cluster& cluster, const Timeline& timeline, const PowerOptions& options, double from_s,
                     double to_s);

}  // namespace tw
