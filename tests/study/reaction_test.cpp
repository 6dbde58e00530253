// An answer that does not react to an input it should react to is a bug; one that reacts the wrong way too.
#include <algorithm>
#include <catch2/catch.hpp>

#include "study/simulated.hpp"

using namespace tw;

TEST_CASE("a larger global batch takes longer a step and works as many samples in fewer steps") {
  const Result small = result(k8), large = result(k8, {"/plan/gbs=16"});
  CHECK(*large.step.time_s > 1.6 * *small.step.time_s);
  CHECK(*large.run.steps == *small.run.steps / 2);
  CHECK(*large.step.samples_per_s > *small.step.samples_per_s);  // accumulation hides the host
}

TEST_CASE("the MFU is over the peak of the precision of the products") {
  const std::string bert = "scenarios/bert-large.json";
  const auto a = loaded(bert).scenario.cluster.node.accelerator;
  const auto flops = [&](const char* name, Precision precision) {  // of the model, by the MFU
    const Result r = result(bert, {std::string("/training/precision=") + name});
    return *r.step.mfu * *r.step.time_s * a.peak(precision).value();
  };
  CHECK(a.peak(Precision::fp32).value() < 0.6 * a.peak(Precision::bf16).value());
  const double bf16 = flops("bf16", Precision::bf16);
  CHECK(flops("fp32", Precision::fp32) == Approx(bf16).epsilon(1e-9));
  CHECK(flops("fp8", Precision::fp8) == Approx(bf16).epsilon(1e-9));
}

TEST_CASE("tensor parallelism trades kernel time for traffic") {
  const Result tp4 = result(kLlama, {"/plan/tp=4", "/plan/cp=1", "/plan/gbs=32"});
  const Result tp8 = result(kLlama, {"/plan/tp=8", "/plan/cp=1", "/plan/gbs=32"});
  // A replica of 8 ranks instead of 4: half as many replicas, so twice the micro-batches of half the work each.
  CHECK(tp8.step.breakdown_s.tp > 1.5 * tp4.step.breakdown_s.tp);
  CHECK(*tp8.memory.per_gpu_bytes < *tp4.memory.per_gpu_bytes);
}

namespace {

// Seconds of a step of Qwen3 30B on 16 H100 whose hosts have no noise.
double experts_step_s(const std::vector<std::string>& settings) {
  std::vector<std::string> set{"/network=models/networks/qwen3-30b-a3b.json",
                               "/software=models/software/nemo-experts.json",
                               "/plan/nodes=2",
                               "/plan/tp=1",
                               "/plan/pp=1",
                               "/plan/vp=1",
                               "/plan/ep=16",
                               "/plan/gbs=64",
                               "/training/sequence=4096",
                               "/cluster/hosts/noise={}"};
  set.insert(set.end(), settings.begin(), settings.end());
  return *result("scenarios/nemo-pretraining.json", set).step.time_s;
}

}  // namespace

TEST_CASE("the wait for counts of tokens costs nothing where the other micro-batch's products are issued before it") {
  const auto costs = [](const char* dispatcher, bool joined, bool stops) {
    return experts_step_s({std::string("/software/dispatcher=") + dispatcher,
                           std::string("/software/dispatch_beside=") + (joined ? "true" : "false"),
                           std::string("/software/dispatch_stops_host=") + (stops ? "true" : "false")});
  };
  for (const char* dispatcher : {"once_a_node", "all_to_all"}) {
    CHECK(costs(dispatcher, true, true) == costs(dispatcher, true, false));
    CHECK(costs(dispatcher, false, true) > 1.01 * costs(dispatcher, false, false));
  }
}

TEST_CASE("a host that is the limit takes longer by every part that joined layers are issued in, but in graphs") {
  // Four micro-batches of 48 layers with eight parts each.
  const std::vector<std::string> joined{"/software/dispatch_beside=true", "/software/host_per_operation=2 ms"};
  const auto with = [&](const char* part, const char* graphs) {
    auto set = joined;
    set.push_back(std::string("/software/host_per_part=") + part);
    set.push_back(std::string("/software/graphs_training=") + graphs);
    return experts_step_s(set);
  };
  CHECK(with("1 ms", "false") - with("0 us", "false") == Approx(4 * 48 * 8 * 1e-3).epsilon(1e-3));
  CHECK(with("1 ms", "true") == with("0 us", "true"));
}

TEST_CASE("more nodes at the same batch: a shorter run, more power in all") {
  const Result four = result(k8, {"/plan/nodes=4", "/plan/gbs=8"}), eight = result(k8);
  CHECK(*eight.run.time_to_train_s.mean < *four.run.time_to_train_s.mean);
  CHECK(eight.power.per_node.size() == 2 * four.power.per_node.size());
  CHECK(*eight.power.network_w >= *four.power.network_w);
}

TEST_CASE("slower links never speed a run, faster ones never slow it") {
  const std::vector<std::string> plan{"/plan/nodes=8", "/plan/cp=2", "/plan/gbs=64",
                                      "/software/gradients_beside_backward=false"};
  double before = 1e300;
  for (const char* rate : {"25 Gbit/s", "100 Gbit/s", "200 Gbit/s", "400 Gbit/s"}) {
    auto set = plan;
    set.push_back(std::string("/cluster/node/nic_bandwidth=") + rate);
    const Result r = result(kLlama, set);
    CHECK(r.step.breakdown_s.dp <= before);
    before = r.step.breakdown_s.dp;
  }
}

TEST_CASE("rectifier loss, PUE and carbon scale what they should and nothing else") {
  const Result base = result(k8);
  const Result lossy = result(k8, {"/cluster/power_delivery/rectifier/proportional_loss=0.05"});
  CHECK(*lossy.energy.total_dc_j == *base.energy.total_dc_j);
  CHECK(*lossy.energy.total_ac_j - *base.energy.total_ac_j ==
        Approx((0.05 - 0.00798) * *base.energy.nodes_dc_j).epsilon(1e-3));
  const Result hot = result(k8, {"/site/pue=1.2"});
  CHECK(*hot.energy.facility_j == Approx(*base.energy.facility_j * 1.2 / 1.1).epsilon(1e-12));
  const Result clean = result(k8, {"/site/carbon_intensity=0.0405 kg/kWh"});
  CHECK(*clean.carbon.kg_co2e == Approx(*base.carbon.kg_co2e / 10).epsilon(1e-12));
  CHECK(*clean.run.time_to_train_s.mean == *base.run.time_to_train_s.mean);
}

TEST_CASE("the published facility energy follows exactly from its DC energy and PUE") {
  // reference/smc_v4.0/published.json: 11,769,962 / 20,381,549 / 45,837,402 J and 3.596 / 6.228 / 14.006 kWh.
  for (const auto& [dc_j, kwh] : {std::pair{11769962.0, 3.596}, {20381549.0, 6.228}, {45837402.0, 14.006}})
    CHECK(dc_j * 1.10 / joules_per_kwh == Approx(kwh).margin(0.0005));
}

TEST_CASE("parts add up to totals") {
  for (const char* file : {"scenarios/smc-llama2-70b-lora-1n.json", "scenarios/smc-llama2-70b-lora-8n.json",
                           "scenarios/smc-unet3d-9n.json"}) {
    CAPTURE(file);
    const Result r = result(file);
    double nodes_j = 0;
    for (const NodePowerResult& n : r.power.per_node) nodes_j += n.dc_j;
    for (const EnergyResult* e : {&r.energy, &r.energy_mlperf_v4_0}) {
      CHECK(*e->nodes_dc_j + *e->network_j == Approx(*e->total_dc_j).epsilon(1e-9));
      CHECK(*e->total_dc_j + *e->rectifier_loss_j == Approx(*e->total_ac_j).epsilon(1e-9));
    }
    CHECK(nodes_j == Approx(*r.energy.nodes_dc_j).epsilon(1e-9));
    CHECK(*r.energy.nodes_dc_j ==
          Approx(*r.power.mean * static_cast<double>(r.power.per_node.size()) * *r.run.time_to_train_s.mean)
              .epsilon(1e-9));
    CHECK(r.step.breakdown_s.total() == Approx(*r.step.time_s).epsilon(1e-9));
  }
}

TEST_CASE("an exchange that ends behind the kernels it hides beside is part of the step") {
  const Result r = result("scenarios/deepseek-v3-gb200.json", {"/placement/rule=spread"});
  CHECK(r.step.breakdown_s.total() == Approx(*r.step.time_s).epsilon(1e-9));
}

TEST_CASE("gradients of no bytes are refused") {
  CHECK_THROWS_WITH(loaded("scenarios/nemo-pretraining.json", {"/software/gradient_bytes_per_parameter=0"}),
                    Catch::Contains("at least 0.25"));
}

TEST_CASE("same seed, same bytes; another seed, another run") {
  SimulationOptions other;
  other.seed = 2;
  const std::string once = to_bytes(result(k8)), again = to_bytes(result(k8));
  CHECK(once == again);
  CHECK(*result(k8, {}, other).run.time_to_train_s.mean != *from_bytes(once).run.time_to_train_s.mean);
}

TEST_CASE("distributions over seeded runs, the olympic mean and the official score") {
  SimulationOptions options;
  options.runs = 10;
  const Result r = result("scenarios/smc-llama2-70b-lora-64n.json", {}, options);
  const Distribution& d = r.run.time_to_train_s;
  CHECK(*d.sd > 0);
  CHECK(*d.p5 <= *d.p50);
  CHECK(*d.p50 <= *d.p95);
  CHECK(*d.official == Approx(*d.olympic * 1.031746032).epsilon(1e-12));
}

TEST_CASE("slower NVLink slows the tensor-parallel exchanges") {
  CHECK(result(k8, {"/cluster/node/nvlink/bandwidth=100 GB/s"}).step.breakdown_s.tp >
        2 * result(k8).step.breakdown_s.tp);
}

TEST_CASE("runs beyond every horizon are refused, long ones keep their memory") {
  CHECK_THROWS_AS(result(k8, {"/run/samples=1e12"}), DoesNotFit);
  CHECK_THROWS_AS(result(k8, {"/software/step_fixed=1e9 s"}), DoesNotFit);
  const Result r = result(k8, {"/run/samples=4000000", "/run/evaluation_interval=0"});
  CHECK(r.timeline.groups.front().phases.size() < 40000);
  CHECK(*r.run.steps == 500000);
}

TEST_CASE("what does not fit is refused with its table") {
  const std::vector<std::string> plain{"/plan/cp=1", "/plan/sharding=none", "/plan/gbs=8"};
  try {
    (void)simulate(loaded(kLlama, plain), {});
    FAIL("8B with plain data parallelism and FP32 states does not fit 80 GB");
  } catch (const DoesNotFit& e) {
    CHECK(std::string(e.what()).find("optimizer") != std::string::npos);
  }
}

TEST_CASE("levels 1 and 2 of a whole scenario agree to 1e-9 without noise") {
  SimulationOptions two;
  two.level = 2;
  const std::vector<std::string> quiet{"/cluster/hosts/noise={}", "/run/samples=1920"};
  CHECK(*result(k8, quiet, two).step.time_s == Approx(*result(k8, quiet).step.time_s).epsilon(1e-9));
  const std::vector<std::string> pipeline{"/cluster/hosts/noise={}",
                                          "/network=models/networks/llama3.1-70b.json",
                                          "/plan/nodes=8",
                                          "/plan/tp=4",
                                          "/plan/pp=4",
                                          "/plan/vp=5",
                                          "/plan/cp=2",
                                          "/run/steps=3"};
  CHECK(*result(kLlama, pipeline, two).step.time_s == Approx(*result(kLlama, pipeline).step.time_s).epsilon(1e-9));
}

TEST_CASE("kernel tables follow another peak or memory bandwidth, and the result says that they are transferred") {
  const std::string at = "/cluster/node/accelerator/";
  const Result base = result(k8);
  const Result memory = result(k8, {at + "memory_bandwidth=6.7 TB/s"}),
               peak = result(k8, {at + "peak_fp8=3958 TFLOP/s"});
  CHECK(memory.step.breakdown_s.compute < base.step.breakdown_s.compute);
  CHECK(peak.step.breakdown_s.compute < base.step.breakdown_s.compute);
  const auto says = [](const Result& r) {
    return std::any_of(r.warnings.begin(), r.warnings.end(),
                       [](const std::string& w) { return w.find("transferred") != std::string::npos; });
  };
  CHECK_FALSE(says(base));
  CHECK(says(memory));
  // The figure that stands there already changes nothing.
  const Result same = result(k8, {at + "memory_bandwidth=3.35 TB/s"});
  CHECK(*same.step.time_s == *base.step.time_s);
  CHECK_FALSE(says(same));
}

TEST_CASE(
    "every part of a profiled workload's overlap counts: what travels beside backward is not counted in buckets") {
  double before = 1e9;
  for (const char* overlap : {"0", "0.2", "0.44", "0.5", "0.56", "0.75", "1"}) {
    CAPTURE(overlap);
    const double step_s =
        *result("scenarios/mlperf-bert.json",
                {std::string("/workload/overlap=") + overlap, "/plan/nodes=4", "/cluster/hosts/noise/device_sigma=0"})
             .step.time_s;
    CHECK(step_s < before);
    before = step_s;
  }
}

TEST_CASE("stalls that have no length say that they change nothing") {
  const auto warned = [](const std::vector<std::string>& set) {
    const auto warnings = result(kLlama, set).warnings;
    return std::any_of(warnings.begin(), warnings.end(),
                       [](const std::string& w) { return w.find("stalls without a length") != std::string::npos; });
  };
  const std::string rate = "/cluster/hosts/noise/stalls_per_hour=483";
  CHECK(warned({rate}));
  CHECK_FALSE(warned({rate, "/cluster/hosts/noise/stall_mean=50 ms"}));
  CHECK_FALSE(warned({}));
}

TEST_CASE("with every replica on its own, a long run simulates so many noisy steps and draws the rest from them") {
  const std::vector<std::string> set{
      "/network=models/networks/llama3.1-70b.json", R"(/run={"steps": 100000})",
      R"(/plan={"nodes": 8, "tp": 4, "pp": 4, "vp": 5, "cp": 2, "gbs": 128, "sharding": "zero1"})"};
  SimulationOptions every;
  every.level = 2;  // all of them would be half a billion visits
  CHECK(*result(kLlama, set, every).step.time_s == Approx(*result(kLlama, set).step.time_s).epsilon(0.01));
}
