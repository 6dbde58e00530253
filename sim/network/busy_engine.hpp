// A job's engine with neighbours on the same links: they compute and communicate, over and over, for as long as the job
// has something to do.
#pragma once

#include <string>
#include <vector>

#include "network/engine.hpp"

namespace tw::network {

struct Neighbour {
  std::string name;
  int load_class = 0;    // of the engine
  double bytes = 0;      // of one communication
  double compute_s = 0;  // before each
};

// What a neighbour's turns (computing and communicating once) took.
struct NeighbourTurns {
  int turns = 0;
  double time_s = 0;  // of all of them
};

class BusyEngine : public Engine {
 public:
  BusyEngine(Engine& inner, std::vector<Neighbour> neighbours);
  double now_s() const override { return inner_.now_s(); }
  void at(double t_s, std::function<void()> what) override;
  void start(int load_class, double bytes, std::function<void()> done) override;
  // Neighbours begin when the job runs, stop when it has nothing left, and their last communication ends by itself.
  void run() override;

  // Quiet engines leave the neighbours out: for what the job takes alone.
  void let_neighbours_run(bool yes) { running_ = yes; }
  // Turns that ended while the job was running; where there were none, the one turn that outlasted it.
  std::vector<NeighbourTurns> turns() const;

 private:
  struct State {
    NeighbourTurns during, after;
  };
  void turn(size_t neighbour);
  Engine& inner_;
  std::vector<Neighbour> neighbours_;
  std::vector<State> states_;
  long pending_ = 0;  // events and transfers of the job
  bool running_ = true;
};

}  // namespace tw::network
