// What is set and acts on nothing says so, and nothing else does.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "study/simulated.hpp"

using namespace tw;

namespace {

std::vector<std::string> told_idle(const Result& r) {
  std::vector<std::string> told;
  for (const std::string& w : r.warnings)
    if (const size_t at = w.find(" changes nothing: "); at != std::string::npos) told.push_back(w.substr(0, at));
  return told;
}

std::string numbers(Result r) {
  r.warnings.clear(), r.inputs_sha256.clear();
  return to_bytes(r);
}

// Of each setting beside `base`: its result differs, or it is told.
void reacts_or_is_told(const std::string& file, const std::vector<std::string>& base,
                       const std::vector<std::string>& settings) {
  const std::string before = numbers(result(file, base));
  for (const std::string& setting : settings) {
    auto set = base;
    set.push_back(setting);
    const Result r = result(file, set);
    const std::string pointer = setting.substr(0, setting.find('=')), key = pointer.substr(pointer.rfind('/') + 1);
    const auto told = told_idle(r);
    CAPTURE(file, setting, r.warnings);
    CHECK(std::count(told.begin(), told.end(), key) == (numbers(r) == before ? 1 : 0));
  }
}

}  // namespace

TEST_CASE("a dense network: what its plan, precision and run leave idle is told") {
  const std::vector<std::string> settings{"/plan/reshard=false",
                                          "/plan/context=all_gather",
                                          "/plan/sequence_parallel=false",
                                          "/training/recompute_layers=2",
                                          "/training/recompute=full",
                                          "/training/offload_update=device",
                                          "/training/offload_overlap=false",
                                          "/training/expert_imbalance=2",
                                          "/training/loss_chunks=2",
                                          "/network/window_chunks=true",
                                          "/network/clamped=true",
                                          "/network/rotary_scaled=true",
                                          "/software/scan_keys=5",
                                          "/software/fused_latent_rotary=false",
                                          "/software/fused_experts=true",
                                          "/software/composite_norms=true",
                                          "/software/norm_backward_speed=1",
                                          "/software/scatter_add=1 TB/s",
                                          "/software/dispatcher=once_a_node",
                                          "/software/dispatch_beside=true",
                                          "/software/host_per_part=1 ms",
                                          "/software/tp_pieces=true",
                                          "/software/tp_piece_gap=1 ms",
                                          "/software/paired_hand_over=true",
                                          "/software/tensors_have_owners=true",
                                          "/software/host_shard_forward=1 ms",
                                          "/software/gather_copy_passes=1",
                                          "/software/fp8_backward_slowdown=1.3",
                                          "/software/current_scaling=true",
                                          "/software/frozen_fp8_bytes_per_parameter=2",
                                          "/software/recompute_stops_early=true",
                                          "/software/evaluation_fixed=5 s",
                                          "/software/graphs_evaluation=true",
                                          "/run/evaluation_samples=50",
                                          "/run/spare_nodes=1",
                                          "/cluster/power_delivery/bus_voltage=48 V",
                                          "/cluster/power_delivery/rectifier/rise=10 degC",
                                          "/cluster/node/accelerator/power/limiter/clock=1.5 GHz",
                                          "/site/series_gaps=hold",
                                          "/cluster/node/host_memory/bandwidth=100 GB/s",
                                          "/cluster/storage/read_bandwidth=1 GB/s",
                                          "/cluster/storage/capacity=1 PB",
                                          "/cluster/node/nvlink/multicast_efficiency=0.5",
                                          "/cluster/fabric/link_efficiency=0.5",
                                          "/cluster/fabric/hop_latency=5 us",
                                          "/cluster/node/nic_bandwidth=100 Gbit/s"};
  reacts_or_is_told(kLlama, {}, settings);  // one node, contexts of two
  reacts_or_is_told(kLlama, {"/plan/nodes=2", "/plan/tp=2", "/plan/pp=2", "/plan/cp=1", "/plan/sharding=none"},
                    {"/plan/sequence_parallel=false", "/plan/context=all_gather", "/software/tp_pieces=false",
                     "/software/tensors_have_owners=true", "/software/cp_round=1 ms", "/plan/etp=1",
                     "/software/host_per_all_reduce=5 ms"});
}

TEST_CASE("adapters in FP8: what only trained weights or whole contexts want is told") {
  reacts_or_is_told(
      k8, {},
      {"/software/fp8_attention_speedup=1.5", "/software/fp8_context_attention=true",
       "/software/transposes_frozen=false", "/software/frozen_fp8_bytes_per_parameter=1", "/software/stores_fp8=false",
       "/software/cast_transpose=1", "/software/gradient_accumulation_fusion=true", "/software/evaluation_fixed=5 s",
       "/cluster/node/accelerator/peak_fp32=600 TFLOP/s"});
}

TEST_CASE("profiled work: what its one accelerator a sample and its own times leave idle is told") {
  reacts_or_is_told("scenarios/mlperf-resnet.json", {},
                    {"/workload/split_exchanges=4", "/cluster/storage/write_bandwidth=1 GB/s",
                     "/cluster/node/host_memory/update_efficiency=0.2", "/run/evaluation_samples=100"});
}

TEST_CASE("what files of models hold, and what is set to what it is without, is not told") {
  CHECK(told_idle(result(kLlama, {"/software=models/software/nemo-26.06.json"})).empty());
  CHECK(told_idle(result(kLlama, {"/plan/reshard=true", "/software/scatter_beside_weights=false"})).empty());
  CHECK(told_idle(result("scenarios/mlperf-bert.json", {"/plan/nodes=4"})).empty());
}

TEST_CASE("a rule that charges a small job more for switches than its nodes draw says so") {
  const auto said = [](const Result& r) {
    return std::any_of(r.warnings.begin(), r.warnings.end(),
                       [](const std::string& w) { return w.find("rule's share of switches") != std::string::npos; });
  };
  // Experts over two nodes cross the rails of a fabric of 576: as_stated charges ports of all its switches.
  CHECK(said(result("scenarios/qwen3.5-35b-h100.json", {})));
  CHECK_FALSE(said(result("scenarios/qwen3.5-35b-h100.json", {"/plan/ep=8"})));
}
