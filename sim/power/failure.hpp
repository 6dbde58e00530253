// What if part of the power delivery fails during a run: who sheds load, who trips, what the run loses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "power/power_run.hpp"

namespace tw {

enum class FailedPart { rectifier, shelf, stage, feed };

// When the load of a bus is beyond what is left: `shed` lowers the board limit of its nodes until it fits, `trip` lets
// the bus go dark.
enum class OverloadPolicy { shed, trip };

struct PowerFailure {
  FailedPart part = FailedPart::rectifier;
  int unit = 0;       // bus of the cluster; for `stage`: unit of that stage
  int count = 1;      // rectifiers or shelves of the bus
  std::string stage;  // kind of the upstream stage that fails, "PDU"
  Time at;            // from run_start
  Time lasts;         // an outage of the feed
  OverloadPolicy policy = OverloadPolicy::shed;
  static void describe(Description<PowerFailure>& d);
};

struct FailureOutcome {
  Timeline timeline;     // as it goes on, or stops
  PowerOptions options;  // for integrate_power(): failed rectifiers, caps
  bool overload = false;
  bool tripped = false;
  double overload_at_s = 0;
  std::vector<int> nodes_off, nodes_capped;
  std::optional<double> gpu_limit_w;  // of the capped nodes
  double slowdown = 1;                // of training after the failure: the job goes at the pace of its slowest node
  double lost_s = 0;                  // added time, or work since the last checkpoint when the job stops
  std::string text() const;           // one sentence
};

// Throws InputError when the failure names a bus or stage that the job does not use.
FailureOutcome fail_power(const Cluster& cluster, const Timeline& timeline, const PowerFailure& failure,
                          const PowerOptions& options = {});

}  // namespace tw
