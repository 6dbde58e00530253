// Plans that ran fit, plans that cannot do not: Megatron Bridge's published runs with their recipes, torchtitan's with
// the memory they reported, and hand calculations.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "core/csv.hpp"
#include "core/document.hpp"
#include "core/text.hpp"
#include "hardware/accelerator.hpp"
#include "study/fitting_plans.hpp"
#include "workload/parameters.hpp"

using namespace tw;

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Run {
  Architecture network;
  Training training;
  Plan plan;
  Software software;
  double total() const { return plan_memory(network, training, plan, software).memory.total(); }
};

// A row of throughput.csv with its recipe.
struct Published {
  CsvTable table = CsvTable::load("reference/megatron_bridge/throughput.csv");
  Software release = load<Software>("models/software/nemo-25.04.json");
  std::map<std::string, Architecture> networks;
  std::map<std::string, double> capacity = {
      {"H100", load<Accelerator>("models/accelerators/h100-sxm.json").memory.value()},
      {"B200", load<Accelerator>("models/accelerators/b200-sxm-180gb.json").memory.value()},
      {"GB200", load<Accelerator>("models/accelerators/gb200.json").memory.value()},
      {"GB300", load<Accelerator>("models/accelerators/gb300.json").memory.value()}};

  Published() { table.join(CsvTable::load("reference/megatron_bridge/recipes.csv"), "row_id"); }
  std::string text(size_t row, const char* key) const { return table.text(row, key); }
  int number(size_t row, const char* key) const { return static_cast<int>(table.number(row, key).value_or(1)); }

  Run run(size_t row) {
    Run r;
    const std::string name = text(row, "network"), precision = text(row, "precision_key");
    if (networks.find(name) == networks.end()) networks[name] = load<Architecture>("models/networks/" + name + ".json");
    r.network = networks[name], r.software = release;
    Plan& p = r.plan;
    p.tp = number(row, "tp"), p.pp = number(row, "pp"), p.vp = number(row, "vp"), p.cp = number(row, "cp");
    p.ep = number(row, "ep"), p.mbs = number(row, "mbs"), p.gbs = number(row, "gbs");
    if (text(row, "kind") == "experts") p.etp = 1;
    p.dp = number(row, "gpus") / (p.tp * p.pp * p.cp);
    const std::string fsdp = text(row, "fsdp");
    p.sharding = fsdp.empty() || fsdp == "0" ? Sharding::zero1 : Sharding::zero3;
    Training& t = r.training;
    t.sequence = number(row, "seq");
    t.precision = precision == "bf16"    ? Precision::bf16
                  : precision == "nvfp4" ? Precision::nvfp4
                  : precision == "mxfp8" ? Precision::mxfp8
                                         : Precision::fp8;
    if (text(row, "task") == "lora") t.lora = Lora{32, 4, 0};
    recipe(row, t);
    // The recipes reduce gradients in the weights' precision (grad_reduce_fp32 False).
    Optimizer o;
    o.gradients = StatePrecision::bf16;
    if (text(row, "exp_avg") == "bfloat16") o.moments = StatePrecision::bf16;
    t.optimizer = o;
    r.software = with_optimizer(r.software, t);
    return r;
  }

  void recipe(size_t row, Training& t) const {
    static const std::map<std::string, Module> modules = {
        {"layernorm", Module::norms}, {"moe_act", Module::activation}, {"mla_up_proj", Module::mla_up},
        {"mlp", Module::mlp},         {"moe", Module::experts},        {"core_attn", Module::attention}};
    std::string list = text(row, "recompute_modules") + " ";
    for (size_t at = list.find(' '); at != std::string::npos; list = list.substr(at + 1), at = list.find(' '))
      if (at > 0) t.recompute = Recompute::selective, t.recompute_modules.push_back(modules.at(list.substr(0, at)));
    // Release 25.09, whose recipes are not known, as the next one.
    const bool late = text(row, "row_id") == "mb286";
    if (late || text(row, "recompute_granularity") == "full") t.recompute = Recompute::full;
    if (t.recompute == Recompute::full) t.recompute_layers = late ? 5 : number(row, "recompute_num_layers");
    if (text(row, "cpu_offloading") == "True") t.offload_layers = number(row, "cpu_offloading_num_layers");
    // Release 25.09, whose recipes are not known: its FSDP runs moved layers to the host as the next release's.
    if (text(row, "row_id") == "mb267") t.offload_layers = 40;
    if (text(row, "row_id") == "mb269") t.offload_layers = 92;
  }
};

// What no implementation can do without, by hand: weights and gradients in BF16 and sharded states; and of each token
// in flight the inputs of norms and attention, its result, what the activation function takes, and its result in FP8.
double at_least(const Run& r) {
  const Architecture& n = r.network;
  const Plan& p = r.plan;
  if (n.mla || n.mamba || p.sharding == Sharding::zero3 || r.training.lora) return 0;
  const double h = static_cast<double>(n.hidden), layers = 1.0 * n.layers / p.pp;  // of a stage
  const double tokens = static_cast<double>(r.training.sequence) * p.mbs / p.cp;
  const double heads = static_cast<double>(n.query_width() + 2 * n.kv_width() + n.output_width());
  const bool experts = n.experts > 0;
  const double size = static_cast<double>(experts ? n.expert_size() : n.ffn);
  const double attention = layers * h * heads / p.tp;
  const double mlp = layers * 3 * h * size * (experts ? 1.0 * n.experts / p.ep : 1.0 / p.tp);
  const double states = 12 * (attention + (experts ? 0 : mlp)) / (p.dp * p.cp);
  // The first stage keeps as many micro-batches as there are stages; interleaved, 2 (pp - 1) + (vp - 1) pp + 1 visits
  // of its chunks (Megatron-LM's warm-up and the one at work).
  const int visits = p.vp > 1 ? 2 * (p.pp - 1) + (p.vp - 1) * p.pp + 1 : p.pp;
  const double rows = tokens * std::min(1.0 * p.ga(), 1.0 * visits / p.vp);
  const double inner = 2.5 * size * (experts ? n.experts_per_token : 1.0 / p.tp);
  return 4 * (attention + mlp) + states + 2 * rows * layers * ((2 * h + heads) / p.tp + inner);
}

Run torchtitan(const std::string& network, bool compiled) {
  Run r;
  r.network = load<Architecture>("models/networks/" + network + ".json");
  r.software = load<Software>(compiled ? "models/software/torchtitan-2024.12-compile.json"
                                       : "models/software/torchtitan-2024.12.json");
  r.training.sequence = 8192;
  r.plan.sharding = Sharding::zero3;
  return r;
}

double reserved_gib(const Run& r) {
  return plan_memory(r.network, r.training, r.plan, r.software).memory.reserved / kGiB;
}

}  // namespace

TEST_CASE("published plans with their recipes fit; with twice the micro-batch and nothing recomputed many cannot") {
  Published published;
  // As printed these contradict themselves: a micro-batch of 2 that the release's recipe has not (two fields differ),
  // and two rows whose accumulation is that of another micro-batch or of no pipeline.
  const std::set<std::string> broken = {"mb166", "mb262", "mb268"};
  int accepted = 0, doubled = 0;
  for (size_t row = 0; row < published.table.rows(); ++row) {
    Run run = published.run(row);
    const std::string id = published.text(row, "row_id");
    const double capacity = published.capacity.at(published.text(row, "system")), total = run.total();
    INFO(id << " " << published.text(row, "network") << " " << published.text(row, "system") << ": " << total / 1e9);
    CHECK((total <= capacity) == (broken.count(id) == 0));
    accepted += total <= capacity;
    run.plan.mbs *= 2, run.plan.gbs = std::max(run.plan.gbs, run.plan.mbs * run.plan.dp);
    run.training.recompute = Recompute::none, run.training.recompute_modules.clear(), run.training.offload_layers = 0;
    if (at_least(run) <= capacity) continue;
    ++doubled;
    CHECK(run.total() > capacity);
  }
  CHECK(accepted == 187);
  CHECK(doubled >= 30);
}

TEST_CASE("torchtitan's reported memory is what its allocator reserved: within 12 %") {
  struct Row {
    const char* network;
    bool compiled;
    int tp, pp, vp, cp, dp, mbs, ga;
    long sequence;
    Recompute recompute;
    double gib;
  };
  // benchmarks/llama3_h100_202412_torchtitan.md; 405B: local batch 32 in as many micro-batches as stages.
  const std::vector<Row> rows = {
      {"llama3.1-8b", false, 1, 1, 1, 1, 8, 2, 1, 8192, Recompute::alternate, 82.4},
      {"llama3.1-8b", true, 1, 1, 1, 1, 8, 2, 1, 8192, Recompute::alternate, 77.0},
      {"llama3.1-8b", false, 1, 1, 1, 1, 128, 2, 1, 8192, Recompute::alternate, 67.0},
      {"llama3.1-8b", true, 1, 1, 1, 1, 8, 1, 1, 32768, Recompute::full, 83.9},
      {"llama3.1-8b", true, 1, 1, 1, 4, 2, 1, 1, 131072, Recompute::full, 84.0},
      {"llama3.1-70b", true, 8, 1, 1, 1, 32, 16, 1, 8192, Recompute::full, 71.9},
      {"llama3.1-405b", true, 8, 8, 2, 1, 8, 4, 8, 8192, Recompute::full, 72.7},
  };
  for (const Row& row : rows) {
    Run r = torchtitan(row.network, row.compiled);
    r.training.sequence = row.sequence, r.training.recompute = row.recompute;
    Plan& p = r.plan;
    p.tp = row.tp, p.pp = row.pp, p.vp = row.vp, p.cp = row.cp, p.dp = row.dp, p.mbs = row.mbs;
    p.gbs = p.mbs * p.dp * row.ga, p.sequence_parallel = row.tp > 1;
    if (row.tp > 1) r.training.precision = Precision::fp8;
    INFO(row.network << " cp " << row.cp << " dp " << row.dp);
    CHECK(reserved_gib(r) == Approx(row.gib).epsilon(0.12));
  }
}

TEST_CASE("Qwen3 30B under FSDP on 8 B200: 141.8 GiB, within 15 %") {
  // torchtitan, micro-batches of 8, selective checkpoints, eight loss chunks, compiled blocks (pith-train issue 79).
  Run r = torchtitan("qwen3-30b-a3b", true);
  r.plan.dp = 8, r.plan.mbs = 8, r.plan.gbs = 64;
  r.training.recompute = Recompute::alternate, r.training.loss_chunks = 8;
  CHECK(reserved_gib(r) == Approx(141.8).epsilon(0.15));
}

// As NVIDIA submitted it to round v4.0: TP 2 on H200, TP 4 on H100.
TEST_CASE("LoRA of 70B with TP 2 fits an H200 and no H100") {
  Run r;
  r.network = load<Architecture>("models/networks/llama2-70b.json");
  r.software = load<Software>("models/software/mlperf-v4.0-nvidia.json");
  r.software.kernels.fp8_attention = true;
  r.training.sequence = 8192, r.training.precision = Precision::fp8, r.training.lora = Lora{};
  r.plan.tp = 2, r.plan.dp = 4, r.plan.gbs = 8;
  CHECK(r.total() > load<Accelerator>("models/accelerators/h100-sxm.json").memory.value());
  CHECK(r.total() < load<Accelerator>("models/accelerators/h200-sxm.json").memory.value());
}

TEST_CASE("LoRA of 70B with TP 1 fits the boards it ran on, and no H100") {
  Run r;
  r.network = load<Architecture>("models/networks/llama2-70b.json");
  r.software = load<Software>("models/software/mlperf-v4.1-nvidia.json");
  r.training.sequence = 8192, r.training.precision = Precision::fp8, r.training.lora = Lora{};
  r.plan.dp = 8, r.plan.gbs = 8;
  const double gib = r.total() / kGiB;
  // 168 to 179 GiB of the board were used (reference/more/README.md); the adapters' dropout is not counted.
  CHECK(gib > 0.88 * 168);
  CHECK(gib < 179);
  CHECK(r.total() < load<Accelerator>("models/accelerators/gb200.json").memory.value());
  CHECK(r.total() < load<Accelerator>("models/accelerators/mi300x.json").memory.value());
  CHECK(r.total() > load<Accelerator>("models/accelerators/h200-sxm.json").memory.value());
}
