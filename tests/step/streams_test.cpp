#include "step/streams.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "step/cost.hpp"

using namespace tw;

namespace {

Task kernel(double length_s, int after = -1, double host_s = 0) {
  Task t;
  t.activity = Activity::gemm_bf16;
  t.length_s = length_s;
  t.after = after;
  t.host_s = host_s;
  return t;
}

Task exchange(double length_s, int after = -1, double beside_s = 0) {
  Task t = kernel(length_s, after);
  t.stream = Stream::tp;
  t.beside_s = beside_s;
  return t;
}

}  // namespace

TEST_CASE("an exchange hides behind kernels that do not wait for it") {
  // Kernel 0, its exchange 1, an independent kernel 2, then one that needs the exchange.
  const Played p = play({kernel(1), exchange(2, 0), kernel(1.5), kernel(1, 1)}, 1, false);
  CHECK(p.end_s == Approx(4));
  CHECK(p.waited_s[static_cast<size_t>(Stream::tp)] == Approx(0.5));
  CHECK(p.busy[Activity::gemm_bf16] == Approx(3.5));
}

TEST_CASE("kernels and exchanges slow each other down while both run") {
  // Exchange of 1 s that takes 1.5 s beside kernels; kernels take 1.1 times as long beside it.
  const Played p = play({exchange(1, -1, 1.5), kernel(3)}, 1.1, false);
  CHECK(p.done_s[0] == Approx(1.5));
  CHECK(p.end_s == Approx(1.5 + (3 - 1.5 / 1.1)));
  // An exchange that ends alone is slowed only as long as the kernel runs.
  const Played q = play({exchange(2, -1, 3), kernel(1)}, 1, false);
  CHECK(q.done_s[0] == Approx(1 + (2 - 1 / 1.5)));
  CHECK(q.end_s == Approx(1));
}

TEST_CASE("the host issues in order, and a late host holds the device up") {
  const Played p = play({kernel(1, -1, 0.5), kernel(1, -1, 2), kernel(1, -1, 0.1)}, 1, true);
  CHECK(p.begin_s[0] == Approx(0.5));
  CHECK(p.begin_s[1] == Approx(2.5));
  CHECK(p.end_s == Approx(4.5));
  CHECK(p.host_end_s == Approx(2.6));
  CHECK(p.host_wait_s == Approx(0.5 + 1));
}

TEST_CASE("tasks that wait for each other are an error") {
  CHECK_THROWS_AS(play({kernel(1, 1), exchange(1, 0)}, 1, false), SimulationError);
}

TEST_CASE("visits compose as (max, +) maps") {
  TaskCost fast, slow;
  fast.busy[Activity::gemm_bf16] = 1, fast.host_s = 0.2, fast.from_host_s = 1.1;
  slow.busy[Activity::gemm_bf16] = 1, slow.host_s = 3, slow.from_host_s = 3.4;
  TaskCost both = fast;
  both += slow;
  CHECK(both.device_s() == Approx(2));
  CHECK(both.host_s == Approx(3.2));
  CHECK(both.from_host() == Approx(3.6));
  TaskCost thrice = slow;
  thrice += slow;
  thrice += slow;
  CHECK(slow.repeated(3).from_host() == Approx(thrice.from_host()));
  CHECK(slow.repeated(3).from_host() == Approx(2 * 3 + 3.4));
  CHECK(fast.repeated(3).from_host() == Approx(1.1 + 2));
}
