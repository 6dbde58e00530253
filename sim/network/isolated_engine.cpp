// The engine without contention: a calendar, and every transfer as if it were alone.
#include <cmath>
#include <stdexcept>

#include "network/calendar.hpp"
#include "network/engine.hpp"
#include "network/link_merge.hpp"

namespace tw::network {
namespace {

class IsolatedEngine final : public Engine {
 public:
  IsolatedEngine(const std::vector<Link>& links, const std::vector<LoadClass>& classes)
      : net_(merge_links(links, classes)) {}
  double now_s() const override { return now_s_; }
  void at(double t_s, std::function<void()> what) override {
    if (!(t_s >= now_s_) || !std::isfinite(t_s)) throw std::logic_error("an event before now");
    calendar_.add(t_s, std::move(what));
  }
  void start(int load_class, double bytes, std::function<void()> done) override {
    if (!(bytes >= 0) || !std::isfinite(bytes)) throw std::logic_error("a transfer of a negative size");
    const MergedClass& c = net_.classes.at(static_cast<size_t>(load_class));
    const double moving_s = c.unit > 0 ? bytes * c.unit / c.alone_rate : 0;
    calendar_.add(now_s_ + c.latency_s + moving_s, std::move(done));
  }
  void run() override {
    while (!calendar_.empty()) {
      now_s_ = calendar_.next_s();
      calendar_.take()();
    }
  }

 private:
  MergedNetwork net_;
  Calendar calendar_;
  double now_s_ = 0;
};

}  // namespace

std::unique_ptr<Engine> isolated_engine(const std::vector<Link>& links, const std::vector<LoadClass>& classes) {
  return std::make_unique<IsolatedEngine>(links, classes);
}

}  // namespace tw::network
