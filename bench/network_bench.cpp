// Speed, memory and growth of the fabric: building, routing, collectives, the engine.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "network/collective.hpp"
#include "network/contention.hpp"
#include "network/link_merge.hpp"
#include "network/message_level.hpp"
#include "network/process.hpp"
#include "topology/inspect.hpp"
#include "topology/placement.hpp"

namespace {

using namespace tw;
using namespace tw::network;

// Non-blocking rail-optimized fat trees of three levels with 8 accelerators a node, 32 nodes a unit.
Cluster cluster_of(int gpus) {
  Cluster c;
  c.name = "bench";
  c.node.gpus = c.node.nics = 8;
  c.node.nic_bandwidth = bytes_per_second(50e9);
  c.node.nvlink.bandwidth = bytes_per_second(450e9);
  FabricType& f = c.fabric;
  f.kind = "fat_tree";
  f.wiring = NicWiring::rails;
  f.leaves_per_unit = 8;
  f.nodes_per_unit = std::min(32, gpus / 8);
  f.units = std::max(1, gpus / 256);
  f.uplinks_per_leaf = 32;
  f.uplink_bandwidth = bytes_per_second(50e9);
  f.switches.ports = 64;
  f.spine_groups = f.units >= 16 ? f.units / 4 : 1;
  f.spines = f.units >= 16 ? 8 * f.units : std::max(8, 4 * f.units);
  f.spines = std::min(f.spines, 32 * f.spine_groups);
  if (f.spine_groups > 1) {
    f.uplinks_per_spine = 32;
    f.cores = 4 * f.units;
  }
  return c;
}

// From the cluster's numbers to the answer, as one command of a user does it.
void all_reduce_from_nothing(benchmark::State& state) {
  const Cluster cluster = cluster_of(static_cast<int>(state.range(0)));
  double time_s = 0;
  for (auto _ : state) {
    const Fabric fabric = build_fabric(cluster);
    Collectives model(fabric);
    time_s = model.cost(Operation::all_reduce, ranks_of(fabric, place_packed(fabric, fabric.node_count)), 1073741824.0)
                 .time_s;
  }
  state.counters["answer_ms"] = time_s * 1e3;
  // In a child of its own, so that the peak is that of this size alone.
  state.counters["peak_MiB"] =
      in_child([&] {
        const Fabric fabric = build_fabric(cluster);
        Collectives model(fabric);
        benchmark::DoNotOptimize(
            model.cost(Operation::all_reduce, ranks_of(fabric, place_packed(fabric, fabric.node_count)), 1e9));
        return std::string("done");
      }).peak_bytes /
      1048576;
  state.SetComplexityN(state.range(0));
}
BENCHMARK(all_reduce_from_nothing)->RangeMultiplier(2)->Range(64, 16384)->Unit(benchmark::kMillisecond)->Complexity();

// The same with the algorithm fixed: growth with ranks.
void ring_only(benchmark::State& state) {
  const Fabric fabric = build_fabric(cluster_of(static_cast<int>(state.range(0))));
  CollectiveOptions o;
  o.algorithm = "ring";
  const auto ranks = ranks_of(fabric, place_packed(fabric, fabric.node_count));
  for (auto _ : state) {
    Collectives model(fabric, o);
    benchmark::DoNotOptimize(model.cost(Operation::all_reduce, ranks, 1e9));
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK(ring_only)
    ->RangeMultiplier(2)
    ->Range(512, 16384)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);

void all_to_all(benchmark::State& state) {
  const Fabric fabric = build_fabric(cluster_of(static_cast<int>(state.range(0))));
  const auto ranks = ranks_of(fabric, place_packed(fabric, fabric.node_count));
  for (auto _ : state) {
    Collectives model(fabric);
    benchmark::DoNotOptimize(model.cost(Operation::all_to_all, ranks, 1e9));
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK(all_to_all)->RangeMultiplier(8)->Range(64, 4096)->Unit(benchmark::kMillisecond);

// Sizes 1 KiB to 16 GiB, the table of nccl-tests.
void size_table(benchmark::State& state) {
  const Fabric fabric = build_fabric(cluster_of(static_cast<int>(state.range(0))));
  const auto ranks = ranks_of(fabric, place_packed(fabric, fabric.node_count));
  for (auto _ : state) {
    Collectives model(fabric);
    benchmark::DoNotOptimize(model.costs(Operation::all_reduce, {ranks}, doubling_sizes()));
  }
}
BENCHMARK(size_table)->Arg(64)->Arg(512)->Arg(4096)->Unit(benchmark::kMillisecond);

void inspection(benchmark::State& state) {
  const Fabric fabric = build_fabric(cluster_of(static_cast<int>(state.range(0))));
  for (auto _ : state) benchmark::DoNotOptimize(topology_summary(fabric));
}
BENCHMARK(inspection)->RangeMultiplier(4)->Range(256, 16384)->Unit(benchmark::kMillisecond);

// Gradient rings of every rail as classes of their own: what the engine has to merge.
void merging(benchmark::State& state) {
  const Fabric fabric = build_fabric(cluster_of(static_cast<int>(state.range(0))));
  CollectiveOptions o;
  o.algorithm = "ring";
  Collectives model(fabric, o);
  std::vector<LoadClass> classes;
  for (int gpu = 0; gpu < 8; ++gpu) {
    std::vector<Rank> rail;
    for (int n = 0; n < fabric.node_count; ++n) rail.push_back({n, gpu});
    classes.push_back(model.cost(Operation::all_reduce, rail, 1e9).load);
  }
  const std::vector<Link> links = engine_links(fabric, classes);
  size_t kept = 0;
  for (auto _ : state) kept = merge_links(links, classes).capacity.size();
  state.counters["links"] = static_cast<double>(links.size());
  state.counters["kept"] = static_cast<double>(kept);
}
BENCHMARK(merging)->RangeMultiplier(4)->Range(256, 16384)->Unit(benchmark::kMillisecond);

// Engine in a child: fork, open, run, exit. Events of 512 independent members and transfers beside them.
void engine_run(benchmark::State& state) {
  const auto members = static_cast<int>(state.range(0));
  for (auto _ : state) {
    const ChildResult r = in_child([&] {
      std::vector<Link> links{{"shared", 50e9}};
      std::vector<LoadClass> classes;
      for (int k = 0; k < 8; ++k) classes.push_back({fmt::format("rail {}", k), {{0, 1}}, 1e-6});
      const auto engine = open_engine(links, classes);
      for (int m = 0; m < members; ++m)
        for (int e = 0; e < 320; ++e) engine->at(1e-4 * e + 1e-9 * m, [] {});
      for (int b = 0; b < 10; ++b)
        for (int k = 0; k < 8; ++k) engine->at(1e-3 * b, [&, k] { engine->start(k, 1e7, [] {}); });
      engine->run();
      return std::string("done");
    });
    if (r.code != ExitCode::done) state.SkipWithError(r.error.c_str());
  }
  state.SetItemsProcessed(state.iterations() * (members * 320 + 160));
}
BENCHMARK(engine_run)->Arg(1)->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

// Benchmarks that fork must not run beside threads; none are made here.
BENCHMARK_MAIN();
