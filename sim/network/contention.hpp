// Several jobs and background traffic on one fabric: what each takes alone, together, and which links they meet on.
#pragma once

#include <string>
#include <vector>

#include "network/collective.hpp"

namespace tw::network {

// A job as the network sees it: it computes, then communicates, `repeats` times.
struct NetworkJob {
  std::string name;
  LoadClass load;        // link ids of the fabric
  double bytes = 0;      // of one communication
  double compute_s = 0;  // before each
  int repeats = 1;
  double begin_s = 0;
};

struct JobOutcome {
  std::string name;
  double alone_s = 0;  // from its begin to its end without the others
  double together_s = 0;
  double slow_down() const { return alone_s > 0 ? together_s / alone_s : 1; }
  std::string bottleneck;  // class of the links that bind it together with the others
  std::string narrowest;   // the link itself
};

// Traffic that is not a collective: each source node sends to the destination nodes in equal parts, through all its
// adapters (reads from storage nodes, a copy between jobs). Payload is counted for each source.
LoadClass traffic_load(Router& router, const Fabric& fabric, const std::string& name, const std::vector<int>& sources,
                       const std::vector<int>& destinations);

// The link on which class `job` gets least when all classes send at once and share each link by halves, thirds, ...;
// -1 when it loads none.
int narrowest_link(const std::vector<Link>& links, const std::vector<LoadClass>& classes, size_t job);

// Runs all jobs on one engine on SimGrid: one call a process (see in_child()).
std::vector<JobOutcome> run_together(const Fabric& fabric, const std::vector<NetworkJob>& jobs);

}  // namespace tw::network
