// An engine that counts the bytes started in each load class: what a step puts on the fabric.
#pragma once

#include <utility>
#include <vector>

#include "network/engine.hpp"

namespace tw::network {

class MeteredEngine : public Engine {
 public:
  MeteredEngine(Engine& inner, size_t classes) : inner_(inner), bytes_(classes, 0) {}
  double now_s() const override { return inner_.now_s(); }
  void at(double t_s, std::function<void()> what) override { inner_.at(t_s, std::move(what)); }
  void start(int load_class, double bytes, std::function<void()> done) override {
    bytes_[static_cast<size_t>(load_class)] += bytes;
    inner_.start(load_class, bytes, std::move(done));
  }
  void run() override { inner_.run(); }

  // Forgets what was counted so far.
  void reset() {
    bytes_.assign(bytes_.size(), 0);
    since_s_ = now_s();
  }
  // Mean rate of a class since then.
  double rate_Bps(size_t load_class) const {
    const double seconds = now_s() - since_s_;
    return seconds > 0 ? bytes_[load_class] / seconds : 0;
  }

 private:
  Engine& inner_;
  std::vector<double> bytes_;
  double since_s_ = 0;
};

}  // namespace tw::network
