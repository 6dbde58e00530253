// Other users of a job's fabric: a second training job, storage or background traffic.
#pragma once

#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "network/busy_engine.hpp"
#include "network/collective_types.hpp"
#include "step/step_network.hpp"
#include "study/result.hpp"
#include "topology/placement.hpp"

namespace tw {

// A second job as the network sees it: all its accelerators compute, then communicate, over and over.
struct NeighbourJob {
  std::string name;
  std::vector<std::string> nodes;
  network::Operation operation = network::Operation::all_reduce;
  Bytes size;
  Time compute;
  static void describe(Description<NeighbourJob>& d);
};

// A stream that is not a collective: reads from storage nodes, a copy.
struct BackgroundTraffic {
  std::string name;
  std::vector<std::string> from, to;
  Bandwidth rate;
  static void describe(Description<BackgroundTraffic>& d);
};

struct Neighbours {
  std::vector<NeighbourJob> jobs;
  std::vector<BackgroundTraffic> traffic;
  bool empty() const { return jobs.empty() && traffic.empty(); }
};

// Faults below `root`: unknown nodes, nodes of the job itself, jobs that never reach the fabric.
void check_neighbours(const Neighbours& neighbours, const Cluster& cluster, const CollectiveLibrary& library,
                      const NodePlacement& placement, int own_nodes, const ReadContext& root);

// Their loads on the fabric, for build_step_network(), in order: jobs, then traffic. `remarks`, when given, gets where
// adaptive routing is not taken to its end.
std::vector<network::LoadClass> neighbour_loads(const Neighbours& neighbours, const Fabric& fabric,
                                                const CollectiveLibrary& library,
                                                std::vector<std::string>* remarks = nullptr);

// Engine input of the same; caps the links of traffic at its offered rate. Call once on the network that was built with
// neighbour_loads().
std::vector<network::Neighbour> neighbours_of(const Neighbours& neighbours, StepNetwork& network);

// The job and its neighbours: time alone and together, and the links that bind them.
std::vector<JobResult> job_results(const std::string& job, double alone_s, double together_s,
                                   const std::vector<network::Neighbour>& neighbours,
                                   const std::vector<network::NeighbourTurns>& turns, const StepNetwork& network,
                                   const Fabric& fabric);

}  // namespace tw
