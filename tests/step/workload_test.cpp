#include <catch2/catch.hpp>

#include "core/csv.hpp"
#include "core/document.hpp"
#include "step/chunk_program.hpp"
#include "step/cost.hpp"
#include "workload/memory.hpp"
#include "workload/operations.hpp"
#include "workload/parameters.hpp"

using namespace tw;

namespace {
Architecture shipped_network(const std::string& name) {
  return load<Architecture>("models/networks/" + name + ".json");
}
}  // namespace

TEST_CASE("parameters and model FLOPs are the published ones") {
  const CsvTable table = CsvTable::load("reference/mlperf/llama31_models.csv");
  for (size_t row = 0; row < table.rows(); ++row) {
    const std::string model = table.text(row, "model");
    if (model != "llama3.1-8b" && model != "llama3.1-70b" && model != "llama3.1-405b") continue;
    const Architecture n = shipped_network(model);
    CHECK(network_parameters(n) == Approx(table.value(row, "params")).epsilon(1e-6));
    Training t;
    t.sequence = 8192;
    CHECK(model_flops_per_sample(n, t) == Approx(table.value(row, "model_flops_per_sample_fwd_bwd")).epsilon(1e-5));
  }
}

TEST_CASE("a frozen base needs about two thirds of the FLOPs") {
  const Architecture n = shipped_network("llama2-70b");
  Training full, lora;
  full.sequence = lora.sequence = 8192;
  lora.lora = Lora{};
  const double ratio = model_flops_per_sample(n, lora) / model_flops_per_sample(n, full);
  // 2/3 for the linear layers; scores have no weights, so their share keeps all of its FLOPs.
  CHECK(ratio > 2.0 / 3);
  CHECK(ratio < 0.72);
}

TEST_CASE("operations of a layer add up to the model's FLOPs") {
  const Architecture n = shipped_network("llama3.1-70b");
  Training t;
  t.sequence = 8192;
  Plan p;
  p.tp = 4, p.cp = 2;
  const Software software;
  double flops = 0;
  const auto ops = layer_operations(n, t, p, software);
  for (const auto& list : {ops.forward, ops.backward})
    for (const Operation& o : list) flops += o.flops;
  // Whole-model layer FLOPs with causal attention, over the 8 ranks of a replica; attention backward does 2.5 times the
  // forward work where the model counts 2.
  const double tokens = 8192, h = 8192;
  const double linear = 6 * tokens * (layer_parameters(n) - 2 * h);
  const double scores = 4 * tokens * tokens * h / 2 * 3.5;
  CHECK(flops * 8 == Approx(linear + scores).epsilon(1e-9));
}

TEST_CASE("mixture of experts: active FLOPs only, all experts' parameters") {
  Architecture n = shipped_network("llama3.1-8b");
  const double dense = layer_parameters(n);
  n.experts = 8, n.experts_per_token = 2;
  CHECK(layer_parameters(n) > 5 * dense);
  Training t;
  t.sequence = 4096;
  Plan p;
  p.ep = 8, p.dp = 8;
  double flops = 0, exchanged = 0;
  for (const Operation& o : layer_operations(n, t, p, Software{}).forward) {
    flops += o.flops;
    if (o.exchange == Exchange::ep_all_to_all) exchanged += o.bytes;
  }
  const double mlp = 2 * 4096.0 * 2 * 3 * 4096 * 14336;
  CHECK(flops > mlp);
  CHECK(flops < 1.5 * mlp);
  CHECK(exchanged == Approx(2 * 2 * 4096.0 * 2 * 4096));
}

TEST_CASE("positions with a factor are eager kernels, and NVFP4 seeks a tensor's largest element") {
  Architecture n = shipped_network("llama3.1-8b");
  Training t;
  t.sequence = 4096;
  const auto of = [&](const char* name) {
    const auto layer = layer_operations(n, t, Plan{}, Software{});
    for (const auto& list : {layer.forward, layer.backward})
      for (const Operation& o : list)
        if (o.name == name) return o;
    return Operation{};
  };
  const double fused = of("rotary").bytes, gradient = of("rotary gradient").bytes;
  n.rotary_scaled = true;
  // Queries of 4,096 and keys of 1,024 channels.
  CHECK(of("rotary").bytes == Approx(31 * 4096.0 * (4096 + 1024)));
  CHECK(of("rotary").bytes > 3 * fused);
  CHECK(of("rotary gradient").bytes > 3 * gradient);
  CHECK(of("rotary").bare);
  t.precision = Precision::mxfp8;
  const Operation mx = of("cast MLP input");
  t.precision = Precision::nvfp4;
  const Operation nv = of("cast MLP input");
  CHECK(nv.bytes - mx.bytes == Approx(2 * 4096.0 * 4096));
  CHECK(nv.launches == mx.launches + 1);
}

TEST_CASE(
    "positions of latent attention take what was measured as eager kernels, and are recomputed with the latents") {
  const Accelerator h200 = load<Accelerator>("models/accelerators/h200-sxm.json");
  Software software = load<Software>("models/software/nemo-25.04.json");
  software.kernels.fused_latent_rotary = false;
  const CsvTable table = CsvTable::load("reference/gpu_lab_13/latent_rotary.csv");
  int rows = 0;
  for (size_t row = 0; row < table.rows(); ++row) {
    Architecture n = shipped_network("deepseek-v3");
    if (table.value(row, "heads") < 64) continue;  // the host's
    n.heads = static_cast<int>(table.value(row, "heads"));
    Training t;
    t.sequence = static_cast<int64_t>(table.value(row, "tokens"));
    const bool backward = table.text(row, "way") == "backward";
    const auto layer = layer_operations(n, t, Plan{}, software);
    for (const Operation& o : backward ? layer.backward : layer.forward)
      if (o.name == std::string(backward ? "rotary gradient" : "rotary")) {
        CHECK(kernel_time_s(o, h200, software, 1) == Approx(table.value(row, "seconds")).epsilon(0.06));
        ++rows;
      }
  }
  CHECK(rows == 6);
  Training t;
  t.sequence = 4096;
  const auto positions = [&] {
    int count = 0;
    for (const Operation& o : layer_operations(shipped_network("deepseek-v3"), t, Plan{}, software).backward)
      count += o.name == std::string("rotary") ? 1 : 0;
    return count;
  };
  CHECK(positions() == 0);
  t.recompute = Recompute::selective;
  t.recompute_modules = {Module::mla_up};
  CHECK(positions() == 1);
}

TEST_CASE("products of a rank's only expert grow with its tokens, whether these are a multiple of anything or not") {
  const Accelerator h100 = load<Accelerator>("models/accelerators/h100-sxm.json");
  const Software software = load<Software>("models/software/nemo-25.04.json");
  Training t;
  t.sequence = 8192;
  Plan p;
  p.ep = 8, p.dp = 8;
  double before_s = 0, even_s = 0;
  for (int percent = 100; percent <= 130; ++percent) {
    t.expert_imbalance = percent / 100.0;
    const auto layer = layer_operations(shipped_network("grok1-314b"), t, p, software);
    double products_s = 0;
    for (const auto& list : {layer.forward, layer.backward})
      for (const Operation& o : list)
        if (std::string(o.name).rfind("experts", 0) == 0) products_s += kernel_time_s(o, h100, software, 1);
    if (percent == 100) even_s = products_s;
    CHECK(products_s >= before_s);
    CHECK(products_s == Approx(even_s * percent / 100).epsilon(0.02));
    before_s = products_s;
  }
}

// Hopper's FP8 products want both operands along k.
TEST_CASE("frozen FP8 weights are transposed for every gradient of an input, where a release does so") {
  const Architecture n = shipped_network("llama2-70b");
  Training t;
  t.sequence = 8192, t.precision = Precision::fp8;
  Plan p;
  p.tp = 4;
  Software once, never;
  once.kernels.transposes_frozen = true;
  const auto transposed = [&](const Software& s) {
    double bytes = 0;
    const LayerOperations layer = layer_operations(n, t, p, s);
    for (const auto& list : {layer.forward, layer.backward})
      for (const Operation& o : list)
        if (std::string(o.name) == "transpose frozen weight") bytes += o.bytes;
    return bytes;
  };
  CHECK(transposed(once) == 0);  // trained weights come with their transposes
  t.lora = Lora{};
  // A byte read and one written for each weight of the layer but its norms'.
  CHECK(transposed(once) == Approx(2 * (layer_parameters(n) - 2 * 8192.0) / 4));
  CHECK(transposed(never) == 0);
  t.recompute = Recompute::full;  // repeats forward, which wants none
  CHECK(transposed(once) == Approx(2 * (layer_parameters(n) - 2 * 8192.0) / 4));
  t.precision = Precision::bf16;
  CHECK(transposed(once) == 0);
  // One habit of both rounds on one chip, as their configurations say (disable_parameter_transpose_cache).
  for (const char* round : {"v4.0", "v4.1"})
    CHECK(load<Software>(std::string("models/software/mlperf-") + round + "-nvidia.json").kernels.transposes_frozen);
}

TEST_CASE("FP8 attention stands between casts, and is BF16 where a release cannot cut it over ranks") {
  const Architecture n = shipped_network("llama2-70b");
  Training t;
  t.sequence = 8192, t.precision = Precision::fp8;
  Plan p;
  Software s;
  s.kernels.cast_traffic = 1.5;
  const auto count = [&](const char* begins, bool fp8) {
    const LayerOperations layer = layer_operations(n, t, p, s);
    int found = 0;
    for (const auto& list : {layer.forward, layer.backward})
      for (const Operation& o : list)
        if (std::string(o.name).rfind(begins, 0) == 0)
          found += o.kind == OperationKind::memory || (o.precision == Precision::fp8) == fp8;
    return found;
  };
  CHECK(count("attention", false) == 2);
  s.kernels.fp8_attention = true;
  CHECK(count("attention", true) == 2);
  CHECK(count("cast heads", true) == 2);
  CHECK(count("cast attention output", true) == 2);
  p.cp = 2;
  CHECK(count("attention", false) == 2);
  CHECK(count("cast heads", true) == 0);
  s.kernels.fp8_context_attention = true;
  CHECK(count("attention", true) == 2);
}

TEST_CASE("current scaling reads an FP8 operand once more, and no other precision's") {
  const Architecture n = shipped_network("llama3.1-8b");
  Training t;
  t.sequence = 4096;
  Software delayed, current;
  delayed.kernels.cast_traffic = current.kernels.cast_traffic = 1.5;
  current.kernels.current_scaling = true;
  const auto cast = [&](const Software& s) {
    for (const Operation& o : layer_operations(n, t, Plan{}, s).forward)
      if (o.name == std::string("cast MLP input")) return o;
    return Operation{};
  };
  t.precision = Precision::fp8;
  CHECK(cast(current).bytes - cast(delayed).bytes == Approx(2 * 4096.0 * 4096));
  for (const Precision p : {Precision::mxfp8, Precision::nvfp4}) {
    t.precision = p;
    CHECK(cast(current).bytes == cast(delayed).bytes);
  }
}

TEST_CASE("kernels bound by memory take what was measured, small ones longer a byte") {
  const Accelerator h100 = load<Accelerator>("models/accelerators/h100-sxm.json");
  Software software;
  software.kernels.memory_efficiency = 1;
  const std::vector<std::string> simple{
      "add_", "gelu_", "rope_triton", "swiglu_fwd_triton", "rms_norm_fwd_triton", "fp8_cast_torch"};
  const CsvTable table = CsvTable::load("reference/gpu_lab_2/memory_ops.csv");
  int rows = 0;
  for (size_t row = 0; row < table.rows(); ++row) {
    const std::string op = table.text(row, "op");
    const bool counts = std::any_of(simple.begin(), simple.end(), [&](const auto& s) { return op.rfind(s, 0) == 0; });
    if (!counts || table.value(row, "bytes_read_plus_written") < 24e6) continue;
    Operation o;
    o.bytes = table.value(row, "bytes_read_plus_written");
    CHECK(kernel_time_s(o, h100, software, 1) == Approx(table.value(row, "seconds")).epsilon(0.06));
    ++rows;
  }
  CHECK(rows > 20);
}

TEST_CASE("layers of chunks") {
  CHECK(layers_of_chunks(80, 4, 5) == std::vector<int>(20, 4));
  const auto proxy = layers_of_chunks(62, 4, 8);  // 62 + embedding + head divide by 32
  CHECK(proxy.front() == 1);
  CHECK(proxy.back() == 1);
  CHECK(proxy[1] == 2);
  const auto uneven = layers_of_chunks(11, 4, 1);
  CHECK(uneven == std::vector<int>{3, 3, 3, 2});
}

TEST_CASE("Llama 3.1 8B with plain data parallelism does not fit one 80 GB GPU; sharded it does") {
  const Architecture n = shipped_network("llama3.1-8b");
  Training t;
  t.sequence = 8192;
  Plan p;
  p.dp = 8;
  Software software;
  const auto plain = memory_of_stages(n, t, p, software, {32}, {StageWork{}});
  CHECK(plain[0].total() > 81559.0 * 1048576);
  CHECK(plain[0].optimizer + plain[0].weights + plain[0].gradients == Approx(18 * network_parameters(n)).epsilon(0.01));
  p.sharding = Sharding::zero1;
  p.cp = 2, p.dp = 4;
  CHECK(memory_of_stages(n, t, p, software, {32}, {StageWork{}})[0].total() < 81559.0 * 1048576);
}
