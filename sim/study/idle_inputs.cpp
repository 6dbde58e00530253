#include "study/idle_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "core/text.hpp"

namespace tw {
namespace {

using nlohmann::json;

// JSON text of what a key of a scenario is where it is absent; empty: nothing.
std::string default_of(const std::string& pointer) {
  const ObjectInfo* object = &description<Scenario>().info();
  std::string text;
  for (const std::string& name : split(pointer.substr(1), '/')) {
    const auto key =
        std::find_if(object->keys.begin(), object->keys.end(), [&](const KeyInfo& k) { return k.name == name; });
    text = key->default_text, object = key->type.object;
  }
  return text;
}

// Keys that act on nothing unless `acts`, and what keeps them from it.
class IdleKeys {
 public:
  IdleKeys(const Document& document, std::vector<std::string>& out) : document_(document), out_(out) {}

  void unless(bool acts, const std::string& why, std::initializer_list<const char*> pointers) {
    for (const std::string pointer : pointers) {
      const json::json_pointer at(pointer);
      // What comes from a file of a model has another place there.
      if (acts || !document_.root().contains(at) || document_.origin(pointer).pointer != pointer) continue;
      if (document_.root().at(at) == json::parse(default_of(pointer), nullptr, false)) continue;
      out_.push_back(fmt::format("{} changes nothing: {}", pointer.substr(pointer.rfind('/') + 1), why));
    }
  }

 private:
  const Document& document_;
  std::vector<std::string>& out_;
};

void of_plan(IdleKeys& keys, const Scenario& s) {
  const Plan& p = s.plan;
  keys.unless(p.sharding == Sharding::zero3, "sharding is not zero3", {"/plan/reshard"});
  keys.unless(p.cp > 1, "cp is 1", {"/plan/context"});
  keys.unless(p.tp > 1, "tp is 1", {"/plan/sequence_parallel"});
  keys.unless(p.tp > 1 && s.network->experts > 0, "no experts over tp ranks", {"/plan/etp"});
}

void of_training(IdleKeys& keys, const Training& t, const Architecture& n) {
  keys.unless(t.recompute == Recompute::selective, "recompute is not selective", {"/training/recompute_modules"});
  keys.unless(t.recompute != Recompute::none, "recompute is none",
              {"/training/recompute_layers", "/training/recompute_towers"});
  keys.unless(!t.lora, "beneath adapters the whole base is frozen", {"/training/frozen_towers"});
  keys.unless(n.experts > 0, "the network has no experts", {"/training/expert_imbalance"});
  keys.unless(n.vocabulary > 0, "the network has no head", {"/training/loss_chunks"});
  keys.unless(t.offload_states > 0, "offload_states is 0", {"/training/offload_update", "/training/offload_overlap"});
}

void of_network(IdleKeys& keys, const Architecture& n, const Software& s) {
  keys.unless(n.window > 0, "the network has no window layers", {"/network/window_chunks"});
  keys.unless(n.experts > 0, "the network has no experts", {"/network/clamped"});
  keys.unless(n.rotary, "positions are not rotary", {"/network/rotary_scaled"});
  keys.unless(n.next_token && n.next_token->depth > 1, "one further token has one set of weights",
              {"/network/next_token/shared"});
  keys.unless(n.mamba.has_value(), "the network has no Mamba layers", {"/software/scan_keys"});
  keys.unless(n.delta.has_value(), "the network has no delta layers", {"/software/delta_rule", "/software/fused_delta"});
  keys.unless(n.mla.has_value(), "attention has no latents", {"/software/fused_latent_rotary"});
  keys.unless(n.biases, "the network has no biases", {"/software/bias_sums"});
  keys.unless(n.experts > 0, "the network has no experts",
              {"/software/fused_experts", "/software/dispatch_stops_host"});
  keys.unless(s.kernels.eager_elementwise, "its kernels are fused (eager_elementwise)",
              {"/software/composite_norms", "/software/norm_backward_speed"});
  keys.unless(s.kernels.eager_elementwise && n.experts > 0, "no eager kernels of experts",
              {"/software/scatter_add", "/software/scale_rows", "/software/rated_peak"});
}

void of_exchanges(IdleKeys& keys, const Plan& p, const Software::Streams& s) {
  const bool later = p.sharding == Sharding::zero1 || p.sharding == Sharding::zero2;
  keys.unless(p.ep > 1, "ep is 1", {"/software/dispatcher", "/software/dispatch_beside"});
  keys.unless(p.ep > 1 && s.dispatch_beside, "micro-batches are not joined (dispatch_beside)",
              {"/software/host_per_part"});
  keys.unless(p.tp > 1, "tp is 1", {"/software/tp_pieces"});
  keys.unless(p.tp > 1 && !p.sequence_parallel, "no tensor-parallel all-reduce", {"/software/host_per_all_reduce"});
  keys.unless(p.tp > 1 && s.tp_pieces, "products are not cut (tp_pieces)",
              {"/software/tp_piece_gap", "/software/tp_scatter_slowdown"});
  keys.unless(p.tp > 1 && p.sequence_parallel, "no tensor-parallel gather", {"/software/fp8_gather"});
  keys.unless(p.cp > 1 && p.context == ContextExchange::ring, "no context in a ring", {"/software/cp_round"});
  keys.unless(p.pp > 1, "pp is 1", {"/software/paired_hand_over"});
  keys.unless(p.sharding != Sharding::none, "sharding is none", {"/software/tensors_have_owners"});
  keys.unless(later, "sharding is neither zero1 nor zero2", {"/software/gather_beside_forward"});
  keys.unless(p.sharding == Sharding::zero3, "sharding is not zero3",
              {"/software/host_shard_forward", "/software/host_shard_backward", "/software/gather_copy_passes"});
}

void of_precision(IdleKeys& keys, const Training& t, const Plan& p, const Software::Kernels& k) {
  const bool scaled = t.precision.scaled, whole = p.cp < 2 || k.fp8_context_attention;
  keys.unless(scaled, "products are in BF16 or wider",
              {"/software/fp8_backward_slowdown", "/software/cast_traffic", "/software/fp8_activation_input",
               "/software/amax_every_micro_batch"});
  keys.unless(scaled && k.fp8_attention && p.cp > 1, "no FP8 attention of parts of a context",
              {"/software/fp8_context_attention"});
  keys.unless(scaled && !t.lora, "no trained weights in FP8", {"/software/cast_transpose", "/software/stores_fp8"});
  keys.unless(scaled && k.fp8_attention && whole, "attention is in BF16", {"/software/fp8_attention_speedup"});
  keys.unless(t.precision == Precision::fp8, "products are not in FP8",
              {"/software/current_scaling", "/software/amax_waits"});
  keys.unless(t.precision == Precision::fp32, "products are not in FP32", {"/cluster/node/accelerator/peak_fp32"});
  keys.unless(t.lora && scaled, "no weights are frozen in FP8",
              {"/software/transposes_frozen", "/software/frozen_fp8_bytes_per_parameter"});
  keys.unless(!t.lora, "weights are frozen",
              {"/software/gradient_accumulation_fusion", "/software/scatter_beside_weights"});
  keys.unless(t.recompute == Recompute::full, "recompute is not full", {"/software/recompute_stops_early"});
}

void of_cluster(IdleKeys& keys, const Scenario& s) {
  const Training none, &t = s.training ? *s.training : none;
  const bool away = t.offload_states > 0 || t.offload_layers > 0;
  const bool reads = s.run.data.sample_bytes.value() > 0, saves = s.run.checkpoints.has_value();
  const bool alone = s.plan.nodes + s.plan.evaluation_nodes <= s.cluster.node.nvlink.nodes && !reads && !saves &&
                     s.jobs.empty() && s.traffic.empty();
  keys.unless(false, "no answer asks for it", {"/cluster/node/accelerator/launch_floor"});
  keys.unless(!alone, "the job stays inside an NVLink domain",
              {"/cluster/fabric/uplink_bandwidth", "/cluster/fabric/link_efficiency", "/cluster/fabric/hop_latency",
               "/cluster/fabric/routing", "/cluster/node/nic_bandwidth"});
  keys.unless(away, "nothing waits in the host's memory",
              {"/cluster/node/host_memory/bandwidth", "/cluster/node/host_memory/copy_bandwidth",
               "/cluster/node/host_memory/update_efficiency"});
  keys.unless(reads || saves, "the run reads no samples and writes no checkpoints",
              {"/cluster/storage/read_bandwidth", "/cluster/storage/node_bandwidth"});
  keys.unless(saves, "the run writes no checkpoints",
              {"/cluster/storage/write_bandwidth", "/cluster/storage/capacity"});
  keys.unless(s.software.streams.nvls, "the release does not use it (nvls)",
              {"/cluster/node/nvlink/multicast_efficiency"});
  keys.unless(s.run.evaluation_interval > 0, "the run evaluates nothing (evaluation_interval)",
              {"/run/evaluation_samples", "/run/first_evaluation_at", "/software/evaluation_fixed",
               "/software/evaluation_per_batch", "/software/first_evaluation_extra",
               "/software/wait_before_first_evaluation", "/software/graphs_evaluation"});
  keys.unless(s.run.reliability.has_value(), "nothing fails (reliability)", {"/run/spare_nodes"});
  keys.unless(false, "telemetry alone shows it",
              {"/cluster/power_delivery/bus_voltage", "/cluster/power_delivery/rectifier/input_voltage",
               "/cluster/power_delivery/rectifier/ambient", "/cluster/power_delivery/rectifier/rise"});
  keys.unless(false, "a laboratory's rows alone ask for it",
              {"/cluster/node/accelerator/power/zero_data", "/cluster/node/accelerator/power/limiter/clock",
               "/cluster/node/accelerator/power/limiter/products_clock"});
  keys.unless(s.plan.tp > 1, "tp is 1", {"/workload/split_exchanges"});
  keys.unless(!s.site.carbon_series.empty() || !s.site.price_series.empty(), "the site names no series",
              {"/site/series_gaps"});
}

}  // namespace

std::vector<std::string> idle_inputs(const Scenario& s, const Document& document) {
  std::vector<std::string> lines;
  IdleKeys keys(document, lines);
  of_cluster(keys, s);
  if (!s.network) return lines;
  of_plan(keys, s);
  of_training(keys, *s.training, *s.network);
  of_network(keys, *s.network, s.software);
  of_exchanges(keys, s.plan, s.software.streams);
  of_precision(keys, *s.training, s.plan, s.software.kernels);
  return lines;
}

}  // namespace tw
