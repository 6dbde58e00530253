// Gated delta rules: what the published model and its kernels say of them.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/csv.hpp"
#include "core/document.hpp"
#include "hardware/accelerator.hpp"
#include "hardware/kernels.hpp"
#include "workload/memory.hpp"
#include "workload/operations.hpp"
#include "workload/parameters.hpp"
#include "workload/pattern.hpp"

using namespace tw;

namespace {

const LayerKind kDeltaAlone{Mixer::delta, Feed::none};

Architecture delta_network(int key_heads = 16, int value_heads = 32) {
  Architecture n;
  n.layers = 1, n.pattern = "delta", n.hidden = 2048, n.heads = 16, n.ffn = 2048;
  n.delta = DeltaNet{key_heads, value_heads, 128, 128};
  return n;
}

LayerOperations delta_layer(const Architecture& n, long sequence, const Plan& plan = {}, const Software& s = {}) {
  Training t;
  t.sequence = sequence;
  return layer_operations(n, kDeltaAlone, t, plan, s);
}

const Operation& delta_operation(const std::vector<Operation>& list, const std::string& name) {
  for (const Operation& o : list)
    if (o.name == name) return o;
  throw std::runtime_error("no " + name);
}

double exchanged_bytes(const LayerOperations& ops) {
  double sum = 0;
  for (const auto* list : {&ops.forward, &ops.backward})
    for (const Operation& o : *list)
      if (o.exchange == Exchange::cp_all_to_all) sum += o.bytes;
  return sum;
}

std::string delta_fault(const std::string& text) {
  Faults faults;
  const Document d = Document::from_text(text, "network", description<Architecture>().info(), {}, faults);
  const Architecture n = read<Architecture>(d, faults);
  if (faults.empty()) check_architecture(n, ReadContext{&d, "", &faults, {}});
  return faults.empty() ? "" : faults.list().front().place + ": " + faults.list().front().what;
}

}  // namespace

TEST_CASE("kernels of gated delta rules are those of their authors' benchmarks, by heads, sequences and lengths") {
  // In the mean of rows of 8 value heads or more and 8,192 tokens or more; a GB200's from an H200's by its
  // multiprocessors and clock and one number.
  struct Bound {
    DeltaRule library;
    const char *column, *gpu, *profile;
    double percent;
  };
  for (const Bound& b : {Bound{DeltaRule::fla, "fla_ms", "H200", "models/accelerators/h200-sxm.json", 6},
                         {DeltaRule::fla, "fla_ms", "GB200", "models/accelerators/gb200.json", 10},
                         {DeltaRule::flash_qla, "flash_qla_ms", "H200", "models/accelerators/h200-sxm.json", 14}}) {
    const auto a = load<Accelerator>(b.profile);
    Software software;
    software.kernels.delta_rule = b.library;
    const CsvTable rows = CsvTable::load("reference/delta_rule/kernels.csv");
    double sum = 0;
    int count = 0;
    for (size_t i = 0; i < rows.rows(); ++i) {
      const double sequences = rows.value(i, "sequences"), tokens = rows.value(i, "tokens");
      if (rows.text(i, "gpu") != b.gpu || rows.value(i, "value_heads") < 8 || sequences * tokens < 8192) continue;
      const bool backward = rows.text(i, "pass") == "backward";
      Plan plan;
      plan.mbs = static_cast<int>(sequences);
      const LayerOperations ops = delta_layer(
          delta_network(static_cast<int>(rows.value(i, "key_heads")), static_cast<int>(rows.value(i, "value_heads"))),
          static_cast<long>(tokens), plan, software);
      const Operation& rule =
          backward ? delta_operation(ops.backward, "delta rule gradient") : delta_operation(ops.forward, "delta rule");
      const double ms = 1e3 * instruction_time_s(a, rule.on_h100_s, "delta_rule");
      sum += std::abs(ms / rows.value(i, b.column) - 1);
      ++count;
    }
    INFO(b.gpu << " " << b.column);
    REQUIRE(count > 40);
    CHECK(100 * sum / count < b.percent);
  }
}

TEST_CASE("a gated delta layer's FLOPs and parameters by hand") {
  // Queries and keys of 2,048 channels, values and gates of 4,096, two numbers of 32 heads.
  const double in = 2 * 2048 + 2 * 4096 + 2 * 32;
  const Architecture n = delta_network();
  const double linear = 2048 * in + 4096 * 2048, rest = 4 * (2 * 2048 + 4096) + 4 * 32 * 128 * 128;
  CHECK(model_flops_per_sample(
            n,
            [] {
              Training t;
              t.sequence = 4096;
              return t;
            }(),
            true) == Approx(4096 * 6 * (linear + rest)));
  CHECK(network_parameters(n) == Approx(linear + 4 * (2 * 2048 + 4096) + 2 * 32 + 128 + 2048 + 2048));
  // Half the network's heads a rank, all of its norm.
  Plan halves;
  halves.tp = 2, halves.sequence_parallel = true;
  const auto whole = delta_layer(n, 4096), half = delta_layer(n, 4096, halves);
  CHECK(delta_operation(half.forward, "delta in").n == Approx(in / 2));
  CHECK(delta_operation(half.forward, "delta rule").flops ==
        Approx(delta_operation(whole.forward, "delta rule").flops / 2));
}

TEST_CASE("mixers whose state walks through the sequence exchange heads where contexts are cut") {
  Plan cut;
  cut.cp = 2;
  // All channels of half the tokens go, the result comes back; in backward again.
  const double in = 2 * 2048 + 2 * 4096 + 2 * 32;
  CHECK(exchanged_bytes(delta_layer(delta_network(), 4096, cut)) == Approx(2 * 2 * 2048 * (in + 4096)));
  CHECK(exchanged_bytes(delta_layer(delta_network(), 4096)) == 0);
  Architecture n;
  n.layers = 1, n.pattern = "M", n.hidden = 2048, n.heads = 16, n.ffn = 2048;
  n.mamba = Mamba{64, 64, 128, 8};
  Training t;
  t.sequence = 4096;
  const double mamba_in = 2 * 4096 + 2 * 8 * 128 + 64;
  CHECK(exchanged_bytes(layer_operations(n, {Mixer::mamba, Feed::none}, t, cut, {})) ==
        Approx(2 * 2 * 2048 * (mamba_in + 4096)));
  // Work of a rank is half of the whole.
  const auto whole = delta_layer(delta_network(), 65536), half = delta_layer(delta_network(), 65536, cut);
  CHECK(delta_operation(half.forward, "delta rule").on_h100_s <
        0.7 * delta_operation(whole.forward, "delta rule").on_h100_s);
}

TEST_CASE("gates of attention widen its first product, and what stands around a rule may be fused") {
  Architecture gated = load<Architecture>("models/networks/qwen3.5-27b.json"), plain = gated;
  plain.attention_gate = false;
  Training t;
  t.sequence = 4096;
  const LayerKind kind{Mixer::attention, Feed::mlp};
  const auto with = layer_operations(gated, kind, t, {}, {}), without = layer_operations(plain, kind, t, {}, {});
  CHECK(delta_operation(with.forward, "QKV").n - delta_operation(without.forward, "QKV").n == 24 * 256);
  CHECK(kept_activation_bytes(gated, kind, t, {}, {}) > kept_activation_bytes(plain, kind, t, {}, {}));
  Software fused;
  fused.kernels.fused_delta = true;
  const LayerKind delta{Mixer::delta, Feed::mlp};
  CHECK(kept_activation_bytes(gated, delta, t, {}, fused) < kept_activation_bytes(gated, delta, t, {}, {}));
  CHECK(layer_operations(gated, delta, t, {}, fused).forward.size() <
        layer_operations(gated, delta, t, {}, {}).forward.size());
}

TEST_CASE("networks with gated delta rules: what cannot be is said") {
  const std::string common =
      R"({"name": "x", "layers": 2, "hidden": 2048, "ffn": 2048, "heads": 16, "vocabulary": 1000)";
  const std::string rule = R"(, "delta": {"key_heads": 16, "value_heads": 32, "key_dim": 128, "value_dim": 128})";
  CHECK(delta_fault(common + R"(, "pattern": "delta+mlp attention+mlp")" + rule + "}").empty());
  CHECK(delta_fault(common + R"(, "pattern": "2*delta+mlp"})").find("delta layers need \"delta\"") !=
        std::string::npos);
  CHECK(delta_fault(common + rule + "}").find("delta stands in no layer") != std::string::npos);
  CHECK(
      delta_fault(
          common +
          R"(, "pattern": "2*delta+mlp", "delta": {"key_heads": 16, "value_heads": 24, "key_dim": 128, "value_dim": 128}})")
          .find("/delta/value_heads: 24 value heads are no multiple of 16 key heads") != std::string::npos);
  CHECK(delta_fault(common + R"(, "pattern": "2*delta+mlp", "attention_gate": true)" + rule + "}")
            .find("attention_gate without attention") != std::string::npos);
  CHECK(delta_fault(common + R"(, "shared_gate": true})").find("shared_gate") != std::string::npos);
}
