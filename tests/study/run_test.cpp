// Whole runs: targets, seeded runs together, checkpoints, failures, slow nodes, data.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/csv.hpp"
#include "paths.hpp"
#include "study/run_study.hpp"
#include "study/simulated.hpp"

using namespace tw;

namespace {

const std::string k64 = "scenarios/smc-llama2-70b-lora-64n.json";
const std::string kTokens = "scenarios/llama3.1-70b-1t-tokens.json";

std::string fault_of(const std::string& file, const std::vector<std::string>& overrides) {
  Faults faults;
  (void)load_scenario(file, overrides, faults);
  std::string text;
  for (const Fault& fault : faults.list()) text += fault.text() + "\n";
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool warns(const Result& r, const std::string& part) {
  for (const std::string& warning : r.warnings)
    if (has(warning, part)) return true;
  return false;
}

double phases_s(const Result& r, PhaseKind kind) {
  double sum = 0;
  for (const Phase& p : r.timeline.groups.front().phases)
    if (p.kind == kind) sum += p.end_s - p.begin_s;
  return sum;
}

// A short pre-training with failures every few minutes.
const std::vector<std::string> kTroubled{"/run/tokens=2e9", "/run/spare_nodes=20", "/run/checkpoints/interval=300 s",
                                         "/run/reliability/gpu_mtbf=400 h", "/run/reliability/node_mtbf=3000 h"};

}  // namespace

TEST_CASE("each seeded run takes its own samples from the list") {
  const std::vector<std::string> list{"/run/samples=null", "/run/samples_by_run=[3072, 3456, 3840, 3072]"};
  const Result r = result(k8, list);
  CHECK(r.series_of_runs.count == 4);
  CHECK(*r.series_of_runs.samples.mean == 3360);
  CHECK(*r.run.samples == 3072);
  SimulationOptions one;
  double olympic = 0, dc_j = 0;
  for (const auto& [samples, seed] : {std::pair{"3072", 1}, std::pair{"3456", 2}, std::pair{"3072", 4}}) {
    one.seed = static_cast<uint64_t>(seed);
    const Result single = result(k8, {std::string("/run/samples=") + samples}, one);
    if (seed != 1) olympic += *single.run.time_to_train_s.mean / 2;
    dc_j += (seed == 1 ? 1 : 0.0) * *single.energy.total_dc_j;
  }
  // Energies and the power of nodes are means over the runs, in the window of their mean time.
  CHECK(*r.energy.total_dc_j == Approx(*r.series_of_runs.total_dc_j.mean).epsilon(1e-9));
  CHECK(*r.energy.total_dc_j > 1.03 * dc_j);
  double nodes_j = 0, parts_j = 0;
  for (const NodePowerResult& node : r.power.per_node) nodes_j += node.dc_j;
  for (const auto& [name, joules] : r.grid.parts_j) parts_j += joules;
  CHECK(nodes_j == Approx(*r.energy.nodes_dc_j).epsilon(1e-9));
  CHECK(parts_j == Approx(*r.energy.nodes_dc_j).epsilon(1e-9));
  CHECK(*r.power.mean * static_cast<double>(r.power.per_node.size()) * *r.run.time_to_train_s.mean ==
        Approx(*r.energy.nodes_dc_j).epsilon(1e-9));
  CHECK(*r.run.days == Approx(*r.run.time_to_train_s.mean / 86400));
  // Runs 2 and one of the two short ones remain: within the noise of a step.
  CHECK(*r.run.time_to_train_s.olympic == Approx(olympic).epsilon(0.005));
  SimulationOptions six;
  six.runs = 6;
  CHECK(*result(k8, list, six).series_of_runs.samples.mean == Approx((3072 * 3 + 3456 * 2 + 3840) / 6.0));
}

TEST_CASE("distributions of time and energy do not depend on the workers") {
  SimulationOptions options;
  options.runs = 60;
  options.workers = 1;
  const std::string alone = to_bytes(result(k64, {}, options));
  options.workers = 3;
  CHECK(alone == to_bytes(result(k64, {}, options)));
  const Result r = from_bytes(alone);
  const SeriesResult& s = r.series_of_runs;
  CHECK(s.count == 60);
  CHECK(*s.total_dc_j.sd > 0);
  CHECK(*s.total_dc_j.mean == Approx(*r.energy.total_dc_j).epsilon(0.02));
  CHECK(s.rcp_rule == "given");
  CHECK(*s.needed_1pct >= *s.needed_2pct);
  CHECK(*s.needed_2pct >= *s.needed_5pct);
  // The first run's energy by the short way and by the full power model.
  options.runs = 1;
  const Result single = result(k64, {}, options);
  CHECK(*single.series_of_runs.total_dc_j.mean == Approx(*single.energy.total_dc_j).epsilon(1e-12));
  CHECK(*single.series_of_runs.total_ac_j.mean == Approx(*single.energy.total_ac_j).epsilon(1e-12));
  CHECK(runs_needed(0.1, 0.01) == 385);
  CHECK(runs_needed(0, 0.01) == 1);
}

TEST_CASE("convergence data set the target, its evaluations and the score") {
  const Result r = result("scenarios/llama2-70b-lora-runs.json");
  CHECK(r.series_of_runs.count == 10);
  CHECK(*r.series_of_runs.samples.mean == Approx(3187).epsilon(0.1));
  CHECK(*r.series_of_runs.samples.sd > 100);
  CHECK(std::fmod(*r.run.target_samples, 384) == 0);
  CHECK(*r.run.evaluations == (*r.run.target_samples - 1536) / 384 + 1);
  CHECK(r.series_of_runs.rcp_rule == "convergence data");
  CHECK(*r.series_of_runs.rcp_factor >= 1);
  CHECK(*r.run.time_to_train_s.official ==
        Approx(*r.run.time_to_train_s.olympic * *r.series_of_runs.rcp_factor).epsilon(1e-12));
  CHECK(warns(r, "learning rates"));
}

TEST_CASE("batch sizes outside the convergence data are warned about, far outside refused") {
  const std::string file = "scenarios/llama2-70b-lora-runs.json";
  CHECK(warns(result(file, {"/plan/gbs=256", "/plan/nodes=32", "/run/runs=1"}), "extrapolated"));
  const std::string text = fault_of(file, {"/plan/gbs=512", "/plan/nodes=64"});
  CHECK(
      has(text, "/plan/gbs: a global batch of 512 is far outside the convergence data of llama2_70b_lora (8 to 128)"));
}

TEST_CASE("maps of an accelerator hold names that are read, and shares above 0") {
  for (const char* setting :
       {"/cluster/node/accelerator/efficiency/attention64=0.5", "/cluster/node/accelerator/efficiency/attention=0",
        "/cluster/node/accelerator/efficiency/optimizer=0", "/cluster/node/accelerator/efficiency/bf16=1e-300",
        "/cluster/node/accelerator/peaks/fp6=\"1 TFLOP/s\""})
    CHECK_THROWS_AS(result(kTokens, {setting}), InputError);
}

TEST_CASE("bad runs are refused by name") {
  CHECK(has(fault_of(kTokens, {"/run/reliability/gpu_mtbf=0 h"}), "/run/reliability/gpu_mtbf"));
  CHECK(has(fault_of(kTokens, {"/run/reliability/node_mtbf=-5 h"}), "/run/reliability/node_mtbf"));
  CHECK(has(fault_of(kTokens, {"/run/samples=5"}), "\"samples\" and \"tokens\" are given; one of them"));
  CHECK(has(fault_of(kTokens, {"/run/checkpoints/every_steps=5"}), "both \"interval\" and \"every_steps\""));
  CHECK(has(fault_of(kTokens, {"/run/checkpoints={}"}), "neither \"interval\" nor \"every_steps\""));
  CHECK(has(fault_of(kTokens, {"/run/slow_nodes=[{\"nodes\": [64], \"slowdown\": 2}]"}), "the job has no node 64"));
  CHECK(has(fault_of(kTokens, {"/run/slow_nodes=[{\"nodes\": [1]}]"}), "neither \"slowdown\" nor \"gpu_limit\""));
  CHECK(has(fault_of("scenarios/smc-resnet-1n.json", {"/run/samples=null", "/run/tokens=1e9"}), "no tokens"));
  CHECK(has(fault_of("scenarios/smc-resnet-1n.json", {"/run/checkpoints={\"interval\": \"60 s\"}"}), "\"size\""));
  CHECK_THROWS_AS(result(kTokens, {"/cluster/storage/capacity=1 TB", "/run/tokens=1e9"}), DoesNotFit);
  CHECK_THROWS_AS(result(kTokens, {"/run/checkpoints/interval=1 s"}), DoesNotFit);
  // Failures faster than checkpoints: no progress, said so.
  CHECK_THROWS_WITH(result(kTokens, {"/run/reliability/gpu_mtbf=4 h", "/run/checkpoints/interval=36000 s"}),
                    Catch::Contains("too frequent for its checkpoints"));
}

TEST_CASE("days for a trillion tokens follow from the step for every published row") {
  const CsvTable table = CsvTable::load(source_folder() + "/reference/mlperf/dgxc_llama31.csv");
  int rows = 0;
  for (size_t i = 0; i < table.rows(); ++i) {
    if (table.text(i, "days_1T") == "n/a") continue;
    ++rows;
    const double tokens = table.value(i, "GBS") * table.value(i, "seq");
    const double days = days_per_trillion_tokens(tokens / table.value(i, "step_time_s"));
    // The step is stated to 0.01 s and the days to 0.01.
    CHECK(std::abs(days - table.value(i, "days_1T")) <= 0.005 + 1e-9 + days * 0.005 / table.value(i, "step_time_s"));
  }
  CHECK(rows == 20);  // all but the proxies of the 405B model
}

TEST_CASE("a trillion tokens on 512 GPUs: whole run, failures and all") {
  const Result r = result(kTokens);
  CHECK(*r.run.steps == std::ceil(1e12 / (1024 * 8192)));
  CHECK(*r.run.days_per_1T_tokens == Approx(1e12 / (1024 * 8192) * *r.step.time_s / 86400).epsilon(1e-9));
  CHECK(*r.run.days > *r.run.days_per_1T_tokens);
  CHECK(*r.run.days_per_1T_tokens_effective == Approx(*r.run.days).epsilon(1e-4));
  CHECK(*r.run.failures.mtbf_s == Approx(54 * 86400.0 / 419 * 32).epsilon(0.01));
  CHECK(*r.run.failures.count > 0);
  CHECK(*r.run.goodput > 0.9);
  CHECK(*r.run.goodput < 1);
  CHECK(*r.run.failures.best_goodput >= *r.run.failures.present_goodput);
  CHECK(r.timeline.groups.front().phases.size() < 60000);
  // Every second of the run is a phase of one kind, and the losses are those of the phases.
  const double restart_s = phases_s(r, PhaseKind::restart);
  CHECK(restart_s == Approx(*r.run.failures.restart_s).epsilon(1e-9));
  CHECK(phases_s(r, PhaseKind::checkpoint) == Approx(*r.run.checkpoint_s).epsilon(1e-6));
  CHECK(*r.run.lost_s == Approx(*r.run.failures.rework_s + *r.run.failures.restart_s).epsilon(1e-12));
  CHECK(phases_s(r, PhaseKind::train) + phases_s(r, PhaseKind::first_step) + phases_s(r, PhaseKind::wait) + restart_s +
            phases_s(r, PhaseKind::checkpoint) ==
        Approx(*r.run.time_to_train_s.mean).epsilon(1e-9));
}

TEST_CASE("failures cost time, spares save some, checkpoints at the proposed interval lose least") {
  const auto mean_s = [](std::vector<std::string> more) {
    SimulationOptions options;
    options.runs = 12;
    std::vector<std::string> all = kTroubled;
    all.insert(all.end(), more.begin(), more.end());
    return *result(kTokens, all, options).run.time_to_train_s.mean;
  };
  const Result one = result(kTokens, kTroubled);
  const double best_s = *one.run.failures.best_interval_s;
  const auto interval = [](double s) { return "/run/checkpoints/interval=" + std::to_string(s) + " s"; };
  const double best = mean_s({interval(best_s)});
  CHECK(best < mean_s({interval(best_s * 16)}));
  CHECK(best < mean_s({interval(best_s / 10)}));
  CHECK(best > mean_s({interval(best_s), "/run/reliability=null"}));
  CHECK(mean_s({"/run/spare_nodes=0"}) > mean_s({"/run/spare_nodes=20"}));
  CHECK(mean_s({interval(best_s), "/run/checkpoints/asynchronous=true"}) < best);
}

// By hand: without checkpoints a run of T that fails at a rate r begins again until T passes without a failure, which
// takes (e^(rT) - 1) / r in the mean.
TEST_CASE("a run that begins again with every failure takes as long as by hand, or is refused by what it would take") {
  const auto with = [](double mtbf_s) {
    return std::vector<std::string>{
        "/run/tokens=1e9", "/run/checkpoints=null", "/cluster/hosts/noise={}", "/software/init=0 s",
        R"(/run/reliability={"name": "one", "detect": "0 s", "reschedule": "0 s", "software_mtbf": ")" +
            std::to_string(64 * mtbf_s) + " s\"}"};
  };
  const double alone_s = *result(kTokens, with(1e9)).run.time_to_train_s.mean;
  SimulationOptions options;
  options.runs = 400;
  const double mean_s = *result(kTokens, with(alone_s), options).run.time_to_train_s.mean;
  CHECK(mean_s == Approx(std::expm1(1) * alone_s).epsilon(0.08));
  CHECK_THROWS_WITH(result(kTokens, with(alone_s / 30)), Catch::Contains("failures; at most"));
}

TEST_CASE("a checkpoint that takes longer than its interval waits, and says so") {
  const Result r = result(kTokens, {"/run/tokens=1e9", "/run/checkpoints/asynchronous=true", "/run/reliability=null",
                                    "/cluster/storage/write_bandwidth=10 GB/s", "/run/checkpoints/interval=30 s"});
  CHECK(warns(r, "longer than the 30 s to the next one"));
  CHECK(*r.run.checkpoints.wait_s > 0);
}

TEST_CASE("a slow node slows all, and draws less when its clock is what is slow") {
  const Result quiet = result(k8, {"/cluster/hosts/noise={}"});
  const auto slow = [&](const std::string& more) {
    return result(k8, {"/cluster/hosts/noise={}", "/run/slow_nodes=[{\"nodes\": [3], " + more + "}]"});
  };
  const Result whole = slow("\"slowdown\": 1.2");
  CHECK(*whole.step.time_s == Approx(*quiet.step.time_s * 1.2).epsilon(0.01));
  CHECK(whole.step.breakdown_s.other - quiet.step.breakdown_s.other == Approx(0.2 * *quiet.step.time_s).epsilon(0.02));
  const Result host = slow("\"slowdown\": 1.2, \"cause\": \"host\"");
  CHECK(*whole.run.time_to_train_s.mean == Approx(*host.run.time_to_train_s.mean).epsilon(1e-12));
  CHECK(whole.power.per_node[3].mean_w < host.power.per_node[3].mean_w);
  CHECK(host.power.per_node[3].mean_w == Approx(host.power.per_node[2].mean_w).epsilon(1e-9));
  // For a minute only: the minute holds fewer steps.
  const Result minute = slow("\"slowdown\": 2, \"from\": \"60 s\", \"to\": \"120 s\"");
  CHECK(*minute.run.time_to_train_s.mean - *quiet.run.time_to_train_s.mean == Approx(30).margin(3));
  // Thermal throttling: the power model says how much slower.
  const Result hot = slow("\"gpu_limit\": \"400 W\"");
  CHECK(*hot.step.time_s > 1.02 * *quiet.step.time_s);
  CHECK(hot.power.per_node[3].mean_w < 0.95 * hot.power.per_node[2].mean_w);
}

TEST_CASE("steps starve when data come slower than they are used") {
  const std::vector<std::string> quiet{"/cluster/hosts/noise={}"};
  const Result fed = result(k8, {"/cluster/hosts/noise={}", "/run/data={\"sample_bytes\": \"32 KiB\"}"});
  CHECK(*fed.step.time_s == *result(k8, quiet).step.time_s);
  // 8 samples a step: 25 GB/s of storage give 1 s.
  const Result starved = result(k8, {"/cluster/hosts/noise={}", "/run/data={\"sample_bytes\": \"3.125 GB\"}"});
  CHECK(*starved.step.time_s == Approx(1).epsilon(1e-9));
  CHECK(starved.step.breakdown_s.other > 0.2);
  CHECK(starved.step.breakdown_s.total() == Approx(1).epsilon(1e-9));
  CHECK(warns(starved, "steps starve"));
  CHECK(*starved.power.steady < 0.9 * *fed.power.steady);
}

TEST_CASE("evaluations beside training that take too long wait for one another, and say so") {
  const Result r = result("scenarios/smc-unet3d-9n.json", {"/run/samples=200000", "/run/evaluation_samples=42000"});
  CHECK(warns(r, "evaluations wait for one another"));
  CHECK_FALSE(warns(result("scenarios/smc-unet3d-9n.json"), "evaluations wait"));
}

TEST_CASE("compared runs share their failures: other switches do not move those of the GPUs") {
  const FailureRates few{{1e-4, 0, 2e-5, 0, 1e-6, 0}}, more{{1e-4, 0, 2e-5, 0, 5e-6, 0}};
  const auto gpus = [](const FailureRates& rates) {
    FailureSource source(rates, 7);
    std::vector<double> at;
    double now_s = 0;
    while (at.size() < 50) {
      now_s += source.next_gap_s();
      if (source.next_kind() == Component::gpu) at.push_back(now_s);
    }
    return at;
  };
  const auto a = gpus(few), b = gpus(more);
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-12));
}

TEST_CASE("an evaluation of a profiled workload has its own activity mix") {
  const std::string unet = "scenarios/smc-unet3d-9n.json";
  const Result same = result(unet);
  const Result host = result(unet, {R"(/workload/evaluation_activities={"memory_bound": 0.1})"});
  REQUIRE(same.power.evaluation);
  CHECK(*host.power.evaluation < 0.8 * *same.power.evaluation);
  CHECK(*host.run.time_to_train_s.mean == Approx(*same.run.time_to_train_s.mean).epsilon(0.02));
}

TEST_CASE("no part of a step is below zero, and they add up to it") {
  for (const char* seed : {"1", "2", "3"}) {
    SimulationOptions o;
    o.seed = std::stoull(seed);
    const Result r = result("scenarios/mlperf-bert.json", {}, o);
    const Breakdown& b = r.step.breakdown_s;
    for (const double part :
         {b.compute, b.host, b.tp, b.cp, b.pp, b.dp, b.ep, b.bubble, b.optimizer, b.jitter, b.other})
      CHECK(part >= 0);
    CHECK(b.total() == Approx(*r.step.time_s).epsilon(1e-9));
  }
}
