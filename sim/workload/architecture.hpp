// Model architectures: what stands in models/networks/*.json.
#pragma once

#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "hardware/accelerator.hpp"

namespace tw {

enum class Mlp { swiglu, gelu };
template <>
struct Choices<Mlp> {
  static std::vector<std::pair<std::string, Mlp>> table();
};

enum class Norm { rmsnorm, layernorm };
template <>
struct Choices<Norm> {
  static std::vector<std::pair<std::string, Norm>> table();
};

// A transformer: decoder (causal) or encoder.
struct Architecture {
  std::string name;
  int layers = 0;
  long hidden = 0;
  long ffn = 0;
  int heads = 0;
  int kv_heads = 0;   // 0: as many as heads
  long head_dim = 0;  // 0: hidden / heads
  long vocabulary = 0;
  Mlp mlp = Mlp::swiglu;
  Norm norm = Norm::rmsnorm;
  bool causal = true;
  bool tied_embeddings = false;
  bool rotary = true;
  bool biases = false;
  double dropout = 0;
  int experts = 0;  // 0: dense
  int experts_per_token = 0;
  std::string source;

  int kv() const { return kv_heads > 0 ? kv_heads : heads; }
  long head_size() const { return head_dim > 0 ? head_dim : hidden / heads; }
  long query_width() const { return heads * head_size(); }
  long kv_width() const { return kv() * head_size(); }
  int mlp_matrices() const { return mlp == Mlp::swiglu ? 3 : 2; }

  static void describe(Description<Architecture>& d);
};

// A benchmark whose kernels are not modelled: time of one step on one accelerator = fixed + per_sample * local batch,
// gradients and an activity mix. Its network part is simulated all the same.
struct ProfiledWorkload {
  std::string name;
  std::string sample = "sample";
  Time fixed, per_sample;
  Bytes gradients;
  double overlap = 0.5;                            // share of the gradient exchange hidden behind backward
  std::map<std::string, double> activities;        // shares of the step's own time
  std::map<std::string, double> fixed_activities;  // of the fixed part; empty: as activities
  std::map<std::string, double> evaluation_activities;  // of an evaluated sample; empty: as activities
  Bytes exchange_per_sample;                       // all-to-all between all accelerators, forward and again backward
  double split_exchanges = 0;                      // when tp accelerators share a sample: exchanges between them a step
  Time evaluation_fixed, evaluation_per_sample;
  std::string accelerator;  // profile of the chip that it was measured on
  std::string source;
  static void describe(Description<ProfiledWorkload>& d);
};

}  // namespace tw
