// The fabric engine as the step sees it: a clock, timers, and transfers that share links by max-min fairness. SimGrid
// stands behind it in a module of its own (engine_module.cpp), opened on first use.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tw::network {

struct Link {
  std::string name;
  double capacity_Bps = 0;  // one direction
};

// `weight` bytes cross `link` for each byte of payload.
struct LinkUse {
  int link = 0;
  double weight = 1;
};

// All links that one collective (or one message) loads, and the latency of its rounds. Alone it takes
// latency_s + bytes * max(weight / capacity).
struct LoadClass {
  std::string name;
  std::vector<LinkUse> uses;
  double latency_s = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual double now_s() const = 0;
  // Calls `what` at time t >= now; equal times in the order they were asked for.
  virtual void at(double t_s, std::function<void()> what) = 0;
  // Starts one transfer of class `load_class`; `done` is called when its last byte has arrived.
  virtual void start(int load_class, double bytes, std::function<void()> done) = 0;
  // Runs until nothing is left. Throws SimulationError, naming what waits, when a started transfer has not finished.
  virtual void run() = 0;
};

// One engine may live in a process (SimGrid's rule): see in_child() in process.hpp. Throws SimulationError when the
// module cannot be opened.
std::unique_ptr<Engine> open_engine(const std::vector<Link>& links, const std::vector<LoadClass>& classes);

// The same max-min sharing on a calendar of our own: transfers that meet nobody cost an event, and any number of
// engines may live in a process. Its times are those of open_engine() to 1e-9 (tests/network/fluid_engine_test.cpp).
std::unique_ptr<Engine> fluid_engine(const std::vector<Link>& links, const std::vector<LoadClass>& classes);

}  // namespace tw::network
