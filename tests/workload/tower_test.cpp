// Towers: parameters as published, FLOPs, states and memory by hand.
#include "workload/tower.hpp"

#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "workload/memory.hpp"
#include "workload/operations.hpp"
#include "workload/parameters.hpp"

using namespace tw;

namespace {

// A small network that sees: 16 patches and a class token become 4 tokens.
struct Seeing {
  Architecture network;
  Training training;
  Plan plan;
  Software software;

  Seeing() {
    network.name = "seeing", network.layers = 2, network.hidden = 128, network.ffn = 256, network.heads = 4;
    network.vocabulary = 1000;
    Tower w;
    w.name = "vision", w.layers = 2, w.hidden = 64, w.ffn = 256, w.heads = 4, w.patch = 48, w.tokens = 17;
    w.class_tokens = 1, w.positions = 17, w.end_norms = 2, w.merge = 4, w.projector = {96}, w.items = 3;
    network.towers = {w};
    training.sequence = 64;
    plan.dp = 1, plan.gbs = 1;
  }
  Tower& tower() { return network.towers.front(); }
  void freeze() { training.frozen_towers = {"vision"}; }
  LayerOperations begins() const { return embedding_operations(network, training, plan, software); }
  std::vector<ParameterGroup> groups() const {
    return parameter_groups(network, training, plan, software, layers_of_chunks(network, plan));
  }
  StageMemory memory() const {
    return memory_of_stages(network, training, plan, software, {network.layers}, {StageWork{}}).front();
  }
};

double seen_flops(const std::vector<Operation>& operations) {
  double sum = 0;
  for (const Operation& o : operations) sum += o.flops;
  return sum;
}

std::string tower_fault(const std::string& keys) {
  const std::string text = R"({"name": "n", "layers": 2, "hidden": 64, "ffn": 64, "heads": 4, "vocabulary": 100,
    "towers": [{"name": "vision", "layers": 4, "hidden": 64, "ffn": 64, "heads": 4, "tokens": 16)" +
                           keys + "}]}";
  Faults faults;
  const Document document = Document::from_text(text, "network", description<Architecture>().info(), {}, faults);
  const Architecture n = read<Architecture>(document, faults);
  check_architecture(n, ReadContext{&document, "", &faults, {}});
  return faults.empty() ? "" : faults.list().front().text();
}

// Of an item of the small tower, forward: multiply-adds with weights, of scores, of the projector.
constexpr double kLinear = 17 * 2 * (4 * 64 * 64 + 2 * 64 * 256) + 16 * 48 * 64;
constexpr double kScores = 2 * 17 * 17 * 2 * 64;
constexpr double kProjector = 4 * (256 * 96 + 96 * 128);

}  // namespace

TEST_CASE("models that see have the parameters of their repositories") {
  const auto network = [](const char* name) {
    return load<Architecture>(std::string("models/networks/") + name + ".json");
  };
  CHECK(network_parameters(network("llama4-scout-vision")) == 108641793536.0);
  CHECK(network_parameters(network("llama4-maverick-vision")) == Approx(401.6e9).epsilon(0.001));
  const Architecture qwen = network("qwen2.5-vl-7b");
  CHECK(tower_parameters(qwen.towers[0]) + projector_parameters(qwen, qwen.towers[0]) == 676550144.0);
  CHECK(network_parameters(qwen) == 8292166656.0);
  CHECK(network_parameters(network("qwen3-vl-30b-a3b")) == Approx(31070754032.0).epsilon(1e-5));
  // A text token does not visit them.
  CHECK(active_parameters(network("llama4-scout-vision")) == active_parameters(network("llama4-scout")));
}

TEST_CASE("FLOPs of a tower by hand, model and operations") {
  Seeing c;
  const TowerFlops f = tower_flops(c.network, c.tower());
  CHECK(f.linear == 3 * kLinear);
  CHECK(f.scores == 3 * kScores);
  CHECK(f.projector == 3 * kProjector);
  Architecture blind = c.network;
  blind.towers.clear();
  const auto beyond = [&](const Training& t) {
    return model_flops_per_sample(c.network, t) - model_flops_per_sample(blind, t);
  };
  const double tower = 2 * 3 * (kLinear + kScores), projector = 2 * 3 * kProjector;
  CHECK(beyond(c.training) == Approx(3 * (tower + projector)).epsilon(1e-12));
  c.plan.mbs = c.plan.gbs = 2;
  LayerOperations ops = c.begins();
  CHECK(seen_flops(ops.forward) == Approx(2 * (tower + projector)).epsilon(1e-12));
  // Patches have no gradient; attention computes its scores again.
  const double patches = 2 * 3 * 16 * 48 * 64, scores = 2 * 3 * kScores;
  CHECK(seen_flops(ops.backward) ==
        Approx(2 * (2 * (tower - scores - patches) + patches + attention_backward_work * scores + 2 * projector))
            .epsilon(1e-12));
  c.freeze();
  CHECK(beyond(c.training) == Approx(tower + 3 * projector).epsilon(1e-12));
  ops = c.begins();
  CHECK(seen_flops(ops.forward) == Approx(2 * (tower + projector)).epsilon(1e-12));
  const double first = 2 * 3 * 4 * 256 * 96;  // nothing before it wants a gradient
  CHECK(seen_flops(ops.backward) == Approx(2 * (2 * projector - first)).epsilon(1e-12));
  c.training.lora = Lora{};
  CHECK(beyond(c.training) == Approx(tower + projector).epsilon(1e-12));
  CHECK(seen_flops(c.begins().backward) == 0);
}

TEST_CASE("tensor-parallel ranks share a tower, context-parallel ones each run all of it") {
  Seeing c;
  const double whole = seen_flops(c.begins().forward), patches = 2 * 3 * 16 * 48 * 64;
  c.plan.cp = 2;
  CHECK(seen_flops(c.begins().forward) == Approx(whole).epsilon(1e-12));
  c.plan.tp = 4;
  const LayerOperations ops = c.begins();
  CHECK(seen_flops(ops.forward) == Approx((whole - patches) / 4 + patches).epsilon(1e-12));
  for (const Operation& o : ops.forward)
    if (o.kind == OperationKind::exchange && o.name != "scatter embedding")
      CHECK(o.exchange == Exchange::tp_all_reduce);  // no sequence parallelism, an even number of products
}

TEST_CASE("all ranks together hold a tower as often as the plan says") {
  for (const int frozen : {0, 1, 2})
    for (const int tp : {1, 2, 4})
      for (const int pp : {1, 2})
        for (const int cp : {1, 2}) {
          Seeing c;
          c.plan.tp = tp, c.plan.pp = pp, c.plan.cp = cp, c.plan.dp = c.plan.gbs = 4;
          c.plan.sharding = Sharding::zero1;
          if (frozen == 1) c.freeze();
          if (frozen == 2) c.training.lora = Lora{};
          double once = 0, trained = 0;
          for (const ParameterGroup& g : c.groups()) {
            CHECK(g.held * tp * cp * 4 == Approx(g.whole * g.copies).epsilon(1e-12));
            if (g.tower != 0) CHECK(g.chunk == 0);
            if (g.kind == ParameterKind::adapter) continue;
            once += g.whole, trained += g.trained ? g.whole : 0;
          }
          CHECK(once == Approx(network_parameters(c.network)).epsilon(1e-12));
          const double still = frozen == 0 ? 0 : frozen == 1 ? tower_parameters(c.tower()) : once;
          CHECK(once - trained == Approx(still).margin(1e-6));
        }
}

TEST_CASE("memory of a tower: states, what is kept, nothing kept of a frozen one") {
  Seeing c;
  c.tower().tokens = 1025, c.training.sequence = 1024, c.tower().items = 2;  // 512 of the 1,024 tokens
  c.software.memory.persistent_gradients = true;
  const double own = tower_parameters(c.tower()), projector = projector_parameters(c.network, c.tower());
  const StageMemory trained = c.memory();
  c.freeze();
  const StageMemory frozen = c.memory();
  Seeing other = c;
  other.network.towers.clear(), other.training.frozen_towers.clear();
  const StageMemory blind = other.memory();
  const auto& m = c.software.memory;
  CHECK(frozen.weights - blind.weights == Approx(2 * (own + projector)));
  CHECK(trained.weights == frozen.weights);
  CHECK(frozen.gradients - blind.gradients == Approx(m.gradient_bytes_per_parameter * projector));
  CHECK(trained.gradients - blind.gradients == Approx(m.gradient_bytes_per_parameter * (own + projector)));
  CHECK(frozen.optimizer - blind.optimizer == Approx(m.optimizer_state_bytes_per_parameter * projector));
  // Of a frozen one the projector's inputs alone: what is merged, and before and after its activation.
  CHECK(frozen.activations - blind.activations == Approx(2.0 * 512 * (256 + 96 + 96)));
  CHECK(trained.activations > frozen.activations);
  CHECK(trained.total() > frozen.total());
  CHECK(frozen.total() > blind.total());
  // Of one that is recomputed the input of each layer, beside what stands before and behind the layers.
  c.training.frozen_towers.clear();
  c.training.recompute = Recompute::full;
  const auto kept = [&] {
    double sum = 0;
    for (const TowerPiece& piece : tower_pieces(c.network, 0, c.training, c.plan, c.software))
      sum += piece.times * piece.tape.forward().end[static_cast<size_t>(Held::activations)];
    return sum;
  };
  const double all = kept();
  c.training.recompute_towers = true;
  Plan items;
  items.mbs = 2, items.gbs = 2, items.sequence_parallel = false;
  Training t;
  t.sequence = 1025;
  const double layer = layer_activation_bytes(tower_network(c.tower()), t, items), states = 2.0 * 2 * 1025 * 64;
  CHECK(all - kept() == Approx(2 * (layer - states)));
}

TEST_CASE("towers stand on the first stage, or on one of their own") {
  Seeing c;
  c.plan.pp = 3, c.plan.layout = "VE|t|tL";
  const std::vector<int> layers = layers_of_chunks(c.network, c.plan);
  CHECK(layers == std::vector<int>{0, 1, 1});
  std::vector<StageWork> work(3);
  for (int stage = 0; stage < 3; ++stage) work[static_cast<size_t>(stage)].chunks = {stage};
  const auto sees = memory_of_stages(c.network, c.training, c.plan, c.software, layers, work);
  Architecture blind = c.network;
  blind.towers.clear();
  const auto without = memory_of_stages(blind, c.training, c.plan, c.software, layers, work);
  CHECK(sees[0].total() > without[0].total());
  CHECK(sees[1].total() == without[1].total());
  CHECK(sees[2].total() == without[2].total());
  std::vector<int> out;
  CHECK(parse_layout("E|Vt|tL", out).find("towers (V) stand in the first chunk") != std::string::npos);
}

TEST_CASE("towers that cannot be are named") {
  CHECK(tower_fault(R"(, "patch": 48)").empty());
  CHECK(tower_fault(R"(, "patch": 48, "pattern": "2*window+mlp 2*attention+mlp", "window": 4)").empty());
  const std::pair<const char*, const char*> odd[] = {
      {"", "neither \"patch\" nor \"vocabulary\" is given"},
      {R"(, "patch": 48, "vocabulary": 10)", "both \"patch\" and \"vocabulary\" are given"},
      {R"(, "patch": 48, "pattern": "3*attention+mlp")", "the pattern has 3 layers, not 4"},
      {R"(, "patch": 48, "pattern": "4*mamba")", "a tower has no such layers"},
      {R"(, "patch": 48, "pattern": "4*attention")", "a tower has no such layers"},
      {R"(, "patch": 48, "pattern": "4*attnetion+mlp")", "'attnetion' is no part of a layer"},
      {R"(, "patch": 48, "pattern": "4*window+mlp")", "window layers need a window"},
      {R"(, "patch": 48, "window": 4)", "window stands in no layer"},
      {R"(, "patch": 48, "pattern": "4*window+mlp", "window": 17)", "a window of 17 tokens exceeds the 16 of an item"},
      {R"(, "patch": 48, "class_tokens": 16)", "class_tokens = 16 of 16 tokens"},
      {R"(, "patch": 48, "merge": 3)", "merge = 3 does not divide the 16 tokens"},
      {R"(, "patch": 48, "projector": [64, 0])", "no width: 0"},
      {R"(, "patch": 48, "tiles": 2)", "unknown key \"tiles\""},
      {R"(, "patch": 48}, {"name": "deep", "layers": 1001, "hidden": 64, "ffn": 64, "heads": 4, "tokens": 16, "patch": 1)",
       "/towers/1/layers: 1001 is out of range"},
      {R"(, "patch": 48}, {"name": "vision", "layers": 4, "hidden": 64, "ffn": 64, "heads": 4, "tokens": 16, "patch": 1)",
       "is another tower's"},
      {R"(, "patch": 48}, {"name": "b", "layers": 4, "hidden": 65, "ffn": 64, "heads": 4, "tokens": 16, "patch": 1)",
       "heads = 4 does not divide hidden (65)"}};
  for (const auto& [keys, what] : odd) {
    INFO(keys);
    CHECK(tower_fault(keys).find(what) != std::string::npos);
  }
}
