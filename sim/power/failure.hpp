// Failures of the power delivery during a run: what a user may ask, and what feeds a job as parts go and come back.
#pragma once

#include <limits>
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
  int unit = 0;               // bus of the cluster; for `stage`: unit of that stage
  int count = 1;              // rectifiers or shelves of the bus, modules of the stage
  std::string stage;          // kind of the upstream stage that fails, "PDU"
  Time at;                    // from run_start
  std::optional<Time> lasts;  // absent: for good
  OverloadPolicy policy = OverloadPolicy::shed;
  static void describe(Description<PowerFailure>& d);
};

// The power delivery of a job in simulated time: which parts work, the charge of each bus's battery, the heat of each
// breaker. It is told what the nodes draw, and answers what they may; nothing is known ahead of its time.
class Supply {
 public:
  // `nodes`: of the cluster, in the order of the job; those from `training` on cannot be held at a limit. Throws
  // InputError when a failure names a bus or stage that the job does not use.
  Supply(const Cluster& cluster, std::vector<int> nodes, size_t training, std::vector<PowerFailure> failures);
  ~Supply();
  Supply(Supply&&) noexcept;
  // Without failures nothing can happen, and nobody needs to tell what nodes draw.
  bool watches() const { return !failures_.empty(); }

  // Watts of each node from now on. True where that, or a part that failed or came back, changes what the nodes may
  // draw: limits_w() or dark() are new, and the watts have to be told again.
  bool load(const std::vector<double>& node_w);
  // When something changes by itself at this load: a part fails or returns, a battery is empty or full, a breaker lets
  // go.
  double next_s() const;
  // Time passes at this load, at most until next_s().
  void pass(double to_s);

  const std::vector<double>& limits_w() const { return limit_w_; }  // of each node's boards; 0: their own
  const std::vector<int>& dark() const { return dark_; }            // positions of the nodes without power
  double back_s() const;                                            // when they have power again; infinite: never

  // What the run lost by its last answer: time under a limit, or work.
  void lost(double seconds, bool stopped);
  // What happened, one sentence for each failure in the order of their times.
  std::vector<std::string> texts() const;
  double lost_s() const;                   // held and stopped; work done again after a restart counts with the run's
  std::vector<FailedUnit> record() const;  // for integrate_power()

 private:
  struct Bus;
  struct Unit;
  struct Story;
  double rating_w(const Bus& bus) const;
  void turn(size_t failure, int sign);
  void hit(Bus& bus, int fewer, int cut, size_t cause);
  void set_out(Unit& unit, bool out);
  void go_dark(Bus& bus);
  void tell(const Bus& bus);
  double hold_w(const Bus& bus) const;

  const Cluster& cluster_;
  std::vector<int> nodes_;
  size_t training_;
  std::vector<PowerFailure> failures_;  // by time
  std::vector<Story> stories_;          // of each
  std::vector<Bus> buses_;
  std::vector<Unit> units_;  // of the stages above, from the buses up
  std::vector<double> node_w_, limit_w_;
  std::vector<int> dark_;
  size_t teller_ = 0;  // the failure behind the last answer
  double now_s_ = 0;
  bool changed_ = false;
};

}  // namespace tw
