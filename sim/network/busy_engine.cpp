#include "network/busy_engine.hpp"

#include <utility>

namespace tw::network {

BusyEngine::BusyEngine(Engine& inner, std::vector<Neighbour> neighbours)
    : inner_(inner), neighbours_(std::move(neighbours)), states_(neighbours_.size()) {}

void BusyEngine::at(double t_s, std::function<void()> what) {
  ++pending_;
  inner_.at(t_s, [this, what = std::move(what)] {
    what();
    --pending_;  // after `what`, which may ask for more
  });
}

void BusyEngine::start(int load_class, double bytes, std::function<void()> done) {
  ++pending_;
  inner_.start(load_class, bytes, [this, done = std::move(done)] {
    done();
    --pending_;
  });
}

void BusyEngine::turn(size_t neighbour) {
  const Neighbour& n = neighbours_[neighbour];
  const double began_s = inner_.now_s();
  const auto communicate = [this, neighbour, began_s] {
    const Neighbour& here = neighbours_[neighbour];
    inner_.start(here.load_class, here.bytes, [this, neighbour, began_s] {
      NeighbourTurns& turns = pending_ > 0 ? states_[neighbour].during : states_[neighbour].after;
      ++turns.turns;
      turns.time_s += inner_.now_s() - began_s;
      if (pending_ > 0) turn(neighbour);
    });
  };
  if (n.compute_s > 0)
    inner_.at(began_s + n.compute_s, communicate);
  else
    communicate();
}

void BusyEngine::run() {
  if (running_ && pending_ > 0)
    for (size_t i = 0; i < neighbours_.size(); ++i) turn(i);
  inner_.run();
}

std::vector<NeighbourTurns> BusyEngine::turns() const {
  std::vector<NeighbourTurns> out;
  for (const State& s : states_) out.push_back(s.during.turns > 0 ? s.during : s.after);
  return out;
}

}  // namespace tw::network
