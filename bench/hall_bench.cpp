// Halls: events alone, of given jobs. Targets: 20 jobs over 30 days with an hourly cap 2 s, 200 MiB; 1,000 jobs on
// 16,384 GPUs over a year 30 s (whole process).
#include <benchmark/benchmark.h>

#include "core/random.hpp"
#include "hall/hall.hpp"

namespace {

using namespace tw;
using namespace tw::hall;

HallPlan plan_of(int nodes, int jobs, double days, int most_nodes) {
  HallPlan plan;
  hall::Cluster c;
  c.name = "c", c.nodes = nodes, c.idle_w = 2000, c.network_w = 500.0 * nodes, c.node_mtbf_s = 2e8, c.repair_s = 86400;
  c.rectifiers = {65.0 * nodes, 0.008, 0};
  plan.clusters = {c};
  SplitMix64 dice = random_stream(1, "bench");
  for (int j = 0; j < jobs; ++j) {
    Job job;
    job.name = job.kind = "job", job.nodes = 1 + static_cast<int>(uniform(dice) * most_nodes);
    job.arrival_s = uniform(dice) * days * 80000, job.work_s = days * 86400 * uniform(dice) / 20;
    job.checkpoint_s = 3600, job.write_s = 20, job.priority = j % 3;
    job.points = {{0, 1, 7000}, {600, 1.05, 6200}, {500, 1.15, 5400}, {400, 1.4, 4600}};
    plan.jobs.push_back(job);
  }
  for (int h = 0; h < static_cast<int>(24 * days); ++h)
    plan.limit_w.then(3600.0 * h, nodes * (4500.0 + 4000 * uniform(dice)));
  plan.queue = Queue::backfill, plan.cap = true, plan.end_s = days * 86400;
  plan.cooling.proportional = 0.2;
  return plan;
}

void hall_month(benchmark::State& state) {
  const HallPlan plan = plan_of(72, 20, 30, 40);
  for (auto _ : state) benchmark::DoNotOptimize(run_hall(plan, 1).feed_j);
}
BENCHMARK(hall_month)->Unit(benchmark::kMillisecond);

void hall_year(benchmark::State& state) {
  const HallPlan plan = plan_of(2048, 1000, 365, 400);
  for (auto _ : state) benchmark::DoNotOptimize(run_hall(plan, 1).feed_j);
}
BENCHMARK(hall_year)->Unit(benchmark::kMillisecond)->Iterations(1);

// Everything arrives at once: thousands wait. Target: cost by event, not by event and waiting job.
void hall_queue(benchmark::State& state) {
  HallPlan plan = plan_of(512, static_cast<int>(state.range(0)), 365, 32);
  for (Job& job : plan.jobs) job.arrival_s = 0;
  for (auto _ : state) benchmark::DoNotOptimize(run_hall(plan, 1).feed_j);
}
BENCHMARK(hall_queue)->Arg(1000)->Arg(8000)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
