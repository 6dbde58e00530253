// Whatever the plan, all ranks together hold the network's parameters as often as the plan says.
#include "workload/parameters.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "core/document.hpp"
#include "workload/memory.hpp"
#include "workload/operations.hpp"

using namespace tw;

namespace {

struct Case {
  Architecture network;
  Training training;
  Plan plan;
  Software software;
  std::vector<int> layers;

  std::vector<ParameterGroup> groups() const { return parameter_groups(network, training, plan, software, layers); }
  int ranks() const { return plan.tp * plan.cp * plan.dp; }  // of a stage
  std::vector<StageMemory> memory() const {
    std::vector<StageWork> work(static_cast<size_t>(plan.pp));
    for (int stage = 0; stage < plan.pp; ++stage) {
      auto& chunks = work[static_cast<size_t>(stage)].chunks;
      chunks.clear();
      for (int v = 0; v < plan.vp; ++v) chunks.push_back(v * plan.pp + stage);
    }
    return memory_of_stages(network, training, plan, software, layers, work);
  }
};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int one_of(std::initializer_list<int> values) { return *(values.begin() + random_() % values.size()); }
  bool coin() { return random_() % 2 == 0; }

  Case plan() {
    Case c;
    Architecture& n = c.network;
    n.layers = one_of({8, 16, 24}), n.heads = 32, n.kv_heads = one_of({2, 8, 32}), n.hidden = 4096;
    n.ffn = one_of({4096, 14336}), n.vocabulary = one_of({0, 32000, 128256}), n.tied_embeddings = coin();
    if (coin()) n.experts = one_of({8, 16}), n.experts_per_token = 2;
    Plan& p = c.plan;
    p.tp = one_of({1, 2, 4, 8}), p.pp = one_of({1, 2, 4}), p.cp = one_of({1, 2, 4}), p.dp = one_of({1, 2, 8, 16});
    p.vp = p.pp > 1 ? one_of({1, 2}) : 1;
    if (n.experts > 0)
      for (p.ep = one_of({1, 2, 4, 8}); p.dp % p.ep != 0;) p.ep /= 2;
    p.sharding = static_cast<Sharding>(one_of({0, 1, 2, 3}));
    p.gbs = p.dp * one_of({1, 4});
    c.training.sequence = 4096;
    c.training.precision = coin() ? Precision::bf16 : Precision::fp8;
    c.training.recompute = static_cast<Recompute>(one_of({0, 1, 3}));
    if (one_of({0, 1, 2}) == 0) c.training.lora = Lora{};
    c.layers.assign(static_cast<size_t>(p.pp * p.vp), n.layers / (p.pp * p.vp));
    c.training.loss_chunks = one_of({1, 1, 8});
    if (n.vocabulary > 0 && coin()) n.towers.push_back(tower(c.training));
    if (one_of({0, 1, 2}) == 0) hybrid(n);
    return c;
  }

 private:
  // Every other layer a gated delta rule, attention gated.
  void hybrid(Architecture& n) {
    const std::string feed = n.experts > 0 ? "experts" : "mlp";
    n.pattern = std::to_string(n.layers / 2) + "*(attention+" + feed + " delta+" + feed + ")";
    n.delta = DeltaNet{32, one_of({32, 64}), 128, 128};
    n.attention_gate = coin(), n.output_norms = coin();
    if (n.experts > 0 && coin()) n.shared_ffn = 4096, n.shared_gate = coin();
  }
  Tower tower(Training& t) {
    Tower w;
    w.name = "eye", w.layers = one_of({4, 6}), w.hidden = 1024, w.ffn = 4096, w.heads = 16, w.patch = 588;
    w.class_tokens = one_of({0, 1}), w.tokens = 576 + w.class_tokens, w.items = one_of({1, 4}),
    w.merge = one_of({1, 4});
    if (coin()) w.projector = {4096};
    w.projector_biases = coin();
    if (coin()) t.frozen_towers.push_back(w.name);
    return w;
  }

  std::mt19937_64 random_;
};

constexpr int kPlans = 3000;

double flops_of(const LayerOperations& ops) {
  double sum = 0;
  for (const auto* list : {&ops.forward, &ops.backward})
    for (const Operation& o : *list) sum += o.flops;
  return sum;
}

}  // namespace

TEST_CASE("random plans: weights, gradients and states over all GPUs are bytes x parameters x copies") {
  Draw draw(1);
  for (int i = 0; i < kPlans; ++i) {
    Case c = draw.plan();
    c.software.memory.persistent_gradients = true;
    const auto groups = c.groups();
    double once = 0, states = 0, weights = 0, gradients = 0;
    for (const ParameterGroup& g : groups) {
      // Held by each rank of a stage = whole, as often as there are copies.
      REQUIRE(g.held * c.ranks() == Approx(g.whole * g.copies).epsilon(1e-12));
      REQUIRE(g.copies % g.shards == 0);
      if (!g.repeated && g.kind != ParameterKind::adapter) once += g.whole;
      const bool some = c.plan.sharding != Sharding::none;
      if (g.trained) states += g.whole * g.copies / (some ? g.shards : 1);
      if (g.trained)
        gradients += g.whole * g.copies *
                     (c.plan.sharding < Sharding::zero2   ? 1
                      : reshards(c.plan) || g.shards == 1 ? 1.0 / g.shards
                                                          : 1 + 1.0 / g.shards);
      weights += g.whole * g.copies * g.weight_bytes *
                 (c.plan.sharding != Sharding::zero3  ? 1
                  : reshards(c.plan) || g.shards == 1 ? 1.0 / g.shards
                                                      : 1 + 1.0 / g.shards);
    }
    REQUIRE(once == Approx(network_parameters(c.network)).epsilon(1e-12));
    double optimizer_bytes = 0, weight_bytes = 0, gradient_bytes = 0;
    for (const StageMemory& m : c.memory())
      optimizer_bytes += m.optimizer * c.ranks(), weight_bytes += m.weights * c.ranks(),
          gradient_bytes += m.gradients * c.ranks();
    REQUIRE(optimizer_bytes == Approx(states * c.software.memory.optimizer_state_bytes_per_parameter).epsilon(1e-12));
    REQUIRE(gradient_bytes == Approx(gradients * c.software.memory.gradient_bytes_per_parameter).epsilon(1e-12));
    REQUIRE(weight_bytes == Approx(weights).epsilon(1e-12));
  }
}

TEST_CASE("random plans: what ZeRO-3 gathers for a pass is at least what a rank does not hold") {
  Draw draw(2);
  for (int i = 0; i < kPlans; ++i) {
    Case c = draw.plan();
    c.plan.sharding = Sharding::zero3;
    const auto groups = c.groups();
    for (int chunk = 0; chunk < static_cast<int>(c.layers.size()); ++chunk) {
      double missing = 0;  // parameters, frozen ones too
      for (const ParameterGroup& g : groups)
        if (g.chunk == chunk) missing += g.held * (1 - 1.0 / g.shards);
      REQUIRE(gathered_bytes(groups, chunk).total() >= missing * (c.training.precision == Precision::fp8 ? 1 : 2));
    }
  }
}

TEST_CASE("random plans: FLOPs do not depend on the split") {
  Draw draw(3);
  for (int i = 0; i < kPlans; ++i) {
    const Case c = draw.plan();
    if (c.plan.tp > c.network.kv()) continue;  // ranks then repeat the products of keys and values
    Plan one;
    one.gbs = one.dp = 1;
    const double whole = flops_of(layer_operations(c.network, c.training, one, c.software)) +
                         flops_of(head_operations(c.network, c.training, one, c.software));
    const double split = flops_of(layer_operations(c.network, c.training, c.plan, c.software)) +
                         flops_of(head_operations(c.network, c.training, c.plan, c.software));
    // Each rank of a replica computes its part of one sample.
    REQUIRE(split * c.plan.tp * c.plan.cp == Approx(whole * c.plan.mbs).epsilon(1e-9));
  }
}

TEST_CASE("random plans: a rank's memory never grows with data parallelism at fixed work") {
  Draw draw(4);
  for (int i = 0; i < kPlans; ++i) {
    Case c = draw.plan();
    Case more = c;
    more.plan.dp *= 2, more.plan.gbs *= 2;  // as many micro-batches a rank
    const auto groups = c.groups();
    // From one holder to two the buffers of their exchange appear.
    if (std::any_of(groups.begin(), groups.end(), [](const auto& g) { return g.shards == 1; })) continue;
    const auto a = c.memory(), b = more.memory();
    for (size_t s = 0; s < a.size(); ++s) REQUIRE(b[s].total() <= a[s].total() * (1 + 1e-12));
  }
}

TEST_CASE("random plans: recomputing and sharding more never holds more activations or states") {
  Draw draw(5);
  for (int i = 0; i < kPlans; ++i) {
    Case c = draw.plan();
    std::vector<double> by_recompute;
    for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
      c.training.recompute = r;
      by_recompute.push_back(c.memory().front().activations);
    }
    REQUIRE(by_recompute[1] <= by_recompute[0]);  // equal where one layer is kept, which is the one at work
    REQUIRE(by_recompute[2] <= by_recompute[1]);
    if (c.layers.front() == 1) continue;
    REQUIRE(by_recompute[1] < by_recompute[0]);
    REQUIRE(by_recompute[2] < by_recompute[1]);
  }
}

TEST_CASE("experts: states of a rank do not depend on expert parallelism, gradients go to the holders of the same") {
  Case c;
  c.network = load<Architecture>("models/networks/mixtral-8x7b.json");
  c.training.sequence = 4096;
  c.plan.dp = 64, c.plan.gbs = 256, c.plan.sharding = Sharding::zero1;
  c.layers = {32};
  for (const int ep : {1, 2, 4, 8}) {
    c.plan.ep = ep;
    // 46.7 G parameters x 12 bytes over 64 ranks.
    CHECK(c.memory().front().optimizer == Approx(12 * 46.7027e9 / 64).epsilon(1e-4));
    CHECK(c.memory().front().optimizer == Approx(12 * network_parameters(c.network) / 64).epsilon(1e-9));
    for (const ParameterGroup& g : c.groups()) CHECK(g.shards == (g.expert() ? 64 / ep : 64));
  }
  CHECK(c.memory().front().optimizer / 1e9 == Approx(8.76).epsilon(0.001));  // at the shipped plan
}

TEST_CASE("untied embeddings are two tables, also on one stage") {
  Case c;
  c.network = load<Architecture>("models/networks/llama3.1-8b.json");
  c.training.sequence = 8192;
  c.plan.dp = 8, c.plan.gbs = 8;
  c.layers = {32};
  const double table = 128256.0 * 4096;
  const double untied = trained_parameters(c.groups(), 0).total();
  const StageMemory with = c.memory().front();
  c.network.tied_embeddings = true;
  CHECK(untied - trained_parameters(c.groups(), 0).total() == Approx(table));
  const StageMemory without = c.memory().front();
  CHECK(with.gradients - without.gradients == Approx(4 * table));
  CHECK(with.optimizer - without.optimizer == Approx(12 * table));
  CHECK(with.weights - without.weights == Approx(2 * table));
}

TEST_CASE("adapters under ZeRO-3: the frozen base is gathered, too") {
  Case c;
  c.network = load<Architecture>("models/networks/llama2-70b.json");
  c.training.sequence = 8192, c.training.lora = Lora{};
  c.plan.tp = 4, c.plan.dp = 16, c.plan.gbs = 16, c.plan.sharding = Sharding::zero3;
  c.layers = {80};
  const auto groups = c.groups();
  CHECK(gathered_bytes(groups, 0).total() / 1e9 == Approx(34.5).epsilon(0.002));
  CHECK(trained_parameters(groups, 0).total() < 1e-3 * gathered_bytes(groups, 0).total());
}

TEST_CASE("chunks of the loss cut head and loss, and change no FLOP") {
  const Architecture n = load<Architecture>("models/networks/qwen3-30b-a3b.json");
  const Software software = load<Software>("models/software/torchtitan-2026.07-compile.json");
  Training t;
  t.sequence = 8192;
  Plan p;
  p.mbs = 8;
  const auto whole = head_operations(n, t, p, software);
  t.loss_chunks = 8;
  const auto cut = head_operations(n, t, p, software);
  CHECK(flops_of(cut) == Approx(flops_of(whole)));
  const auto rows = [](const LayerOperations& ops) {
    std::vector<double> m;
    for (const Operation& o : ops.forward)
      if (o.name == "head") m.push_back(o.m);
    return m;
  };
  CHECK(rows(whole) == std::vector<double>{8.0 * 8192});
  CHECK(rows(cut) == std::vector<double>(8, 8192.0));
}
