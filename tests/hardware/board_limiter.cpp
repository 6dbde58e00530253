// The board's limiter in time: what it lets through, and for how long. Measured bursts are rows of suite gpu-lab-power.
#include "hardware/board_limiter.hpp"

#include <catch2/catch.hpp>

using namespace tw;

namespace {

GpuPower board() {
  GpuPower p;
  p.context = watts(100);
  p.held_share = 1;
  LimiterProfile l;
  l.period = seconds(0.1), l.window = seconds(1), l.seen = seconds(0.05);
  l.fast_share = 1.1, l.least_share = 0.7, l.clock_exponent = 0.5;
  l.clock = Frequency::from_value(2e9), l.products_clock = 0.8;
  p.limiter = l;
  return p;
}

}  // namespace

TEST_CASE("a burst draws all it wants until a decision, then the fast limit, then what its second has left") {
  BoardLimiter b(board(), watts(700), 100);
  CHECK(b.watts(900) == 900);
  CHECK(b.clock_hz() == 2e9);
  b.pass(0.1, 900);
  b.decide();
  CHECK(b.watts(900) == Approx(770));  // 1.1 x 700
  CHECK(b.clock_hz() == Approx(2e9 * 0.8 * std::sqrt(670.0 / 800)));
  CHECK(b.watts(80) == 80);  // rest draws what it draws
  for (int i = 0; i < 6; ++i) b.pass(0.1, 900), b.decide();
  CHECK(b.watts(900) == Approx(770));
  b.pass(0.1, 900), b.decide();  // nine tenths hold 10 J of rest, 90 and 7 x 77: 61 of the 700 J of a second are left
  CHECK(b.watts(900) == Approx(610));
  b.pass(0.1, 900), b.decide();  // and then 10
  CHECK(b.watts(900) == Approx(0.7 * 700));
  double joules = 0;
  for (int i = 0; i < 100; ++i) {
    joules += b.watts(900) * 0.1;
    b.pass(0.1, 900), b.decide();
    CHECK(b.watts(900) <= 770 * (1 + 1e-12));
    CHECK(b.watts(900) >= 490 * (1 - 1e-12));
  }
  CHECK(joules / 10 == Approx(700).epsilon(0.01));
}

TEST_CASE("work below the limit and bursts shorter than a period are never held") {
  BoardLimiter b(board(), watts(700), 100);
  for (int i = 0; i < 50; ++i) {
    CHECK(b.watts(650) == 650);
    b.pass(0.1, 650), b.decide();
  }
  BoardLimiter c(board(), watts(700), 100);
  for (int i = 0; i < 20; ++i) {
    CHECK(c.watts(900) == 900);
    c.pass(0.07, 900);
    c.pass(0.03, 100), c.decide();
    c.pass(0.1, 100), c.decide();
  }
}
