// Limits of a search for plans: which of them a simulated plan breaks, and which one an estimate is surely beyond.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "study/plan_search.hpp"
#include "topology/fabric.hpp"

namespace tw {

// Which limit a simulated plan breaks, or why it cannot be ranked; empty: neither.
std::string broken_limit(const PlanAnswer& answer, const PlanLimits& limits,
                         const std::vector<PlanObjective>& objectives);

// A plan that is beyond a limit even at the least ratio of peaks and times to their estimates seen so far is not worth
// a simulation. The first guesses are below what any shipped scenario shows.
class LimitPruning {
 public:
  LimitPruning(const Scenario& scenario, const PlanLimits& limits);
  // The limit that the estimate is beyond; empty: none.
  std::string beyond(const PlanCandidate& candidate);
  void learn(const PlanAnswer& answer);

 private:
  struct Least {
    double ratio;
    bool known = false;
    void add(double one);
  };
  double bus_w(const PlanCandidate& candidate) const;
  double facility_w(const PlanCandidate& candidate);

  const Scenario& scenario_;
  const PlanLimits& limits_;
  const Fabric fabric_;
  std::map<int, double> network_w_;  // by nodes
  Least facility_{0.8}, bus_{0.8}, time_{0.95};
};

}  // namespace tw
