// Exchanges inside visits beside others on the same links: times by hand, max-min.
#include <catch2/catch.hpp>

#include "core/random.hpp"
#include "network/engine.hpp"
#include "step/chunk_program.hpp"
#include "step/step_model.hpp"

using namespace tw;

namespace {

constexpr double kLink = 50e9;  // B/s

PassCost kernels(double forward_s, double backward_s) {
  PassCost cost;
  cost.forward.busy[Activity::gemm_bf16] = forward_s;
  cost.backward.busy[Activity::gemm_bf16] = backward_s;
  return cost;
}

// One link of one NIC, over which everything goes: class 0, and the exchange `what` as class 1.
StepNetwork one_link(Exchange what, int stages) {
  StepNetwork net;
  net.links = {{"NIC", kLink}};
  net.classes = {{"other", {{0, 1}}, 0}, {"inside", {{0, 1}}, 0}};
  net.in_visits[what] = {std::vector<int>(static_cast<size_t>(stages), 1), 1};
  net.shared = {{what, 1 / kLink}};
  return net;
}

double step_s(const StepPlan& plan, const StepNetwork& net) {
  const auto engine = network::fluid_engine(net.links, net.classes);
  return simulate_step(plan, net, *engine, 1, 1, 0).time_s;
}

}  // namespace

TEST_CASE("an all-to-all of experts and gradients on the same NIC share it by halves") {
  StepPlan plan;
  plan.cost = {kernels(1e-3, 8e-3)};
  TaskCost& backward = plan.cost[0].backward;
  backward.ep_s = 2e-3;
  // From 4 to 6 ms of a backward of 10 ms; a bucket of 3 ms is ready at 5 ms.
  backward.shared = {{Exchange::ep_all_to_all, 2e-3 * kLink, 4e-3, 2e-3, 2e-3, 0}};
  plan.cost[0].buckets = {{0.5, {3e-3 * kLink, 0}, 1}};
  StepNetwork net = one_link(Exchange::ep_all_to_all, 1);
  net.gradient_exchange = {0};
  // The millisecond that is left of the all-to-all takes two; of the bucket two are left at 7 ms; backward ends at 11.
  CHECK(step_s(plan, net) == Approx(1e-3 + 11e-3).epsilon(1e-9));
  // A bucket at the end has the link for itself.
  plan.cost[0].buckets[0].share = 1;
  CHECK(step_s(plan, net) == Approx(1e-3 + 10e-3 + 3e-3).epsilon(1e-9));
  // One whose waits are hidden has room for what it takes longer.
  plan.cost[0].buckets[0].share = 0.5;
  backward.shared[0].waited_s = 0;
  backward.shared[0].slack_s = 0.4e-3;
  CHECK(step_s(plan, net) == Approx(1e-3 + 10.6e-3).epsilon(1e-9));
  // A bucket that was to leave at 7 ms of a visit that is 0.5 ms late by then leaves at 7.5.
  backward.shared[0].waited_s = 2e-3;
  plan.cost[0].buckets = {{0.55, {0.5e-3 * kLink, 0}, 1}, {0.7, {5e-3 * kLink, 0}, 1}};
  CHECK(step_s(plan, net) == Approx(1e-3 + 7.5e-3 + 5e-3).epsilon(1e-9));
}

TEST_CASE("tensor parallelism over the NICs shares them with what a pipeline hands over") {
  StepPlan plan;
  plan.stages = 2;
  plan.micro_batches = 2;
  plan.cost = {kernels(4e-3, 8e-3), kernels(4e-3, 8e-3)};
  plan.hand_over_bytes = 1e-3 * kLink;
  for (PassCost& cost : plan.cost) cost.forward.tp_s = 1e-3;
  StepNetwork net = one_link(Exchange::tp_all_gather, 2);
  net.forward_hand_over = {{0}, {-1}};
  net.backward_hand_over = {{-1}, {-1}};
  const double apart_s = step_s(plan, net);
  // First stage: forwards from 0 to 5 and 5 to 10 ms; the first is handed over while the second exchanges.
  plan.cost[0].forward.shared = {{Exchange::tp_all_gather, 1e-3 * kLink, 0, 1e-3, 1e-3, 0}};
  // The hand-over arrives 1 ms later, and the second forward ends 1 ms later. The second stage begins at 7 ms in place
  // of 6: forward, backward, forward, backward without a gap from there on.
  CHECK(step_s(plan, net) == Approx(apart_s + 1e-3).epsilon(1e-9));
}

TEST_CASE("level 1 and 2 play exchanges inside visits alike") {
  StepPlan plan;
  plan.members = 2;
  plan.cost = {kernels(1e-3, 8e-3)};
  plan.cost[0].backward.ep_s = 2e-3;
  plan.cost[0].backward.shared = {{Exchange::ep_all_to_all, 2e-3 * kLink, 4e-3, 2e-3, 2e-3, 0}};
  plan.cost[0].buckets = {{0.5, {3e-3 * kLink, 0}, 1}};
  StepNetwork net = one_link(Exchange::ep_all_to_all, 1);
  net.gradient_exchange = {0};
  const double one_s = step_s(plan, net);
  // Two replicas in one group.
  net.in_visits[Exchange::ep_all_to_all] = {{1, 1}, 2};
  const auto engine = network::fluid_engine(net.links, net.classes);
  CHECK(simulate_step(plan, net, *engine, 2, 1, 0).time_s == Approx(one_s).epsilon(1e-12));
}

TEST_CASE("what kernels wait for in a visit, and what hides") {
  // Kernel, exchange that the next kernel needs, kernel, exchange that only the last one needs.
  std::vector<Task> tasks(5);
  tasks[0].length_s = 1;
  tasks[1].stream = Stream::ep, tasks[1].length_s = 2, tasks[1].bytes = 20, tasks[1].after = 0;
  tasks[1].load = Exchange::ep_all_to_all;
  tasks[2].length_s = 3, tasks[2].after = 1;
  tasks[3].stream = Stream::cp, tasks[3].length_s = 2, tasks[3].bytes = 10, tasks[3].after = 0;
  tasks[3].load = Exchange::cp_exchange;
  tasks[4].length_s = 1, tasks[4].after = 3;
  const SharedExchanges shared{{Exchange::ep_all_to_all, 0.1}, {Exchange::cp_exchange, 0.1}};
  const auto found = visit_exchanges(tasks, play(tasks, 1, false), shared);
  REQUIRE(found.size() == 2);
  CHECK(found[0].begin_s == Approx(1));
  CHECK(found[0].alone_s == Approx(2));
  CHECK(found[0].waited_s == Approx(2));
  CHECK(found[0].slack_s == 0);
  // Loads of the engine do not share here: from 1 to 3, and needed at 6.
  CHECK(found[1].begin_s == Approx(1));
  CHECK(found[1].alone_s == Approx(1));
  CHECK(found[1].waited_s == 0);
  CHECK(found[1].slack_s == Approx(3));
}

TEST_CASE("many exchanges of one kind are played in a few pieces that add up") {
  std::vector<VisitExchange> all;
  for (int i = 0; i < 10; ++i) all.push_back({Exchange::cp_exchange, 5, i * 1.0, 0.5, i % 2 == 0 ? 0.5 : 0, 0.1});
  const auto pieces = in_pieces(all);
  REQUIRE(pieces.size() == 4);
  double bytes = 0, waited_s = 0;
  for (const VisitExchange& p : pieces) bytes += p.bytes, waited_s += p.waited_s;
  CHECK(bytes == Approx(50));
  CHECK(waited_s == Approx(2.5));
  CHECK(pieces[1].begin_s == Approx(3));
}

TEST_CASE("pieces hold what a visit's exchanges hold, kind by kind, over random visits") {
  SplitMix64 stream = random_stream(7, "pieces", 0);
  for (int visit = 0; visit < 2000; ++visit) {
    std::vector<Task> tasks;
    const auto count = static_cast<int>(1 + 40 * uniform(stream));
    for (int i = 0; i < count; ++i) {
      Task t;
      t.length_s = uniform(stream);
      if (i > 0 && uniform(stream) < 0.5) {
        const bool experts = uniform(stream) < 0.5;
        t.stream = experts ? Stream::ep : Stream::cp,
        t.load = experts ? Exchange::ep_all_to_all : Exchange::cp_exchange;
        t.bytes = 1 + 100 * uniform(stream);
      }
      if (i > 0) t.after = static_cast<int>(i * uniform(stream));
      tasks.push_back(t);
    }
    const SharedExchanges shared{{Exchange::ep_all_to_all, 0.01}, {Exchange::cp_exchange, 0.002}};
    const auto found = visit_exchanges(tasks, play(tasks, 1, false), shared);
    const auto pieces = in_pieces(found);
    for (const auto& [what, rate] : shared) {
      double sent = 0, of_visit = 0, of_pieces = 0, alone_s = 0, waited_s = 0;
      size_t number = 0;
      for (const Task& t : tasks) sent += t.load == what ? t.bytes : 0;
      for (const VisitExchange& x : found)
        if (x.what == what) of_visit += x.bytes, alone_s += x.alone_s, waited_s += x.waited_s;
      for (const VisitExchange& x : pieces)
        if (x.what == what) of_pieces += x.bytes, alone_s -= x.alone_s, waited_s -= x.waited_s, ++number;
      CHECK(of_visit == Approx(sent));
      CHECK(of_pieces == Approx(sent));
      CHECK(alone_s == Approx(0).margin(1e-9));
      CHECK(waited_s == Approx(0).margin(1e-9));
      CHECK(number <= 4);
    }
    for (const VisitExchange& x : found) CHECK((x.waited_s >= 0 && x.waited_s <= x.alone_s && x.slack_s >= 0));
  }
}
