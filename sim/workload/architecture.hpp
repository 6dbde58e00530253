// Model architectures: what stands in models/networks/*.json.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"
#include "hardware/accelerator.hpp"

namespace tw {

enum class Mlp { swiglu, geglu, gelu, squared_relu };
// Whether half of the inner channels gate the others.
inline bool gated(Mlp mlp) {
  return mlp == Mlp::swiglu || mlp == Mlp::geglu;
}

enum class Norm { rmsnorm, layernorm };

// Norms of queries and keys: none, over each head, or over all heads together.
enum class QkNorm { none, head, width };

// Biases of attention alone: none, of queries, keys and values, or of the output's projection, too.
enum class AttentionBiases { none, qkv, all };

// Multi-head latent attention: queries, and keys and values, through narrow projections (DeepSeek-V2, section 2.1).
struct Mla {
  long query_rank = 0;  // 0: queries straight from the hidden state
  long kv_rank = 0;
  long nope = 0, rope = 0, value = 0;  // sizes of a head: without and with rotary position, and of its values
  static void describe(Description<Mla>& d);
};

// Mamba-2 mixer (Dao and Gu 2024).
struct Mamba {
  int heads = 0;
  long head_dim = 0, state = 0;
  int groups = 1;       // heads of a group share their input and output maps
  int convolution = 4;  // taps
  int chunk = 128;      // tokens that a scan takes together
  static void describe(Description<Mamba>& d);
  long inner() const { return heads * head_dim; }
  long maps() const { return 2L * groups * state; }
};

// A gated delta rule (Gated DeltaNet; Yang, Kautz and Hatamizadeh 2024): linear attention whose state forgets and is
// corrected by each token's key.
struct DeltaNet {
  int key_heads = 0, value_heads = 0;  // queries are as keys; the value heads share them in groups
  long key_dim = 0, value_dim = 0;     // of a head
  int convolution = 4;                 // taps
  static void describe(Description<DeltaNet>& d);
  long keys() const { return key_heads * key_dim; }
  long values() const { return value_heads * value_dim; }
  // Queries, keys and values, which are convolved; and with the output's gates and two numbers of a head.
  long convolved() const { return 2 * keys() + values(); }
  long projected() const { return convolved() + values() + 2L * value_heads; }
};

// Layers after the last that predict further tokens: each joins the hidden state with the next token's embedding, and
// shares embedding and head.
struct NextToken {
  int depth = 0;        // further tokens
  std::string pattern;  // layers of each; empty: the network's last
  bool shared = false;  // one set of weights for all of them
  static void describe(Description<NextToken>& d);
};

// What one layer of the stack does.
enum class Mixer { none, attention, window, mamba, delta };
enum class Feed { none, mlp, experts };
struct LayerKind {
  Mixer mixer = Mixer::attention;
  Feed feed = Feed::mlp;
  bool kept = false;  // nothing of it is computed again, whatever is of others (Training::recompute_layers)
  bool operator==(const LayerKind& o) const { return mixer == o.mixer && feed == o.feed && kept == o.kept; }
  bool operator<(const LayerKind& o) const {
    return mixer != o.mixer ? mixer < o.mixer : feed != o.feed ? feed < o.feed : kept < o.kept;
  }
};

// A stack of its own whose last states stand among the tokens of the network: an encoder of images, sound or text.
// Its layers see all tokens of an item (an image, a tile, a clip); a projector brings what they make to the network's
// width.
struct Tower {
  std::string name;
  int layers = 0;
  std::string pattern;  // of attention+mlp and window+mlp; empty: attention+mlp alone
  long hidden = 0, ffn = 0;
  int heads = 0;
  long head_dim = 0;  // 0: hidden / heads
  Mlp mlp = Mlp::gelu;
  Norm norm = Norm::layernorm;
  bool biases = true;
  bool rotary = false;
  long window = 0;              // tokens of the group that a window layer sees
  long tokens = 0;              // of an item
  int items = 1;                // of a sample
  long patch = 0;               // values of a token, projected to the hidden size; or
  long vocabulary = 0;          // tokens that are looked up
  long positions = 0;           // learned ones
  int class_tokens = 0;         // learned, among `tokens`, left out behind the layers
  int end_norms = 1;            // beside those of the layers: behind them, and before them
  int merge = 1;                // tokens that become one
  std::vector<long> projector;  // widths between what is merged and the network's hidden size
  bool projector_biases = false;
  int projectors = 1;  // alike, of the last states and of those of layers on the way
  long made() const { return (tokens - class_tokens) / merge; }  // tokens among those of the network, of an item
  static void describe(Description<Tower>& d);
};

// A transformer, or a stack of other layers: decoder (causal) or encoder.
struct Architecture {
  std::string name;
  int layers = 0;
  std::string pattern;  // empty: all layers alike, attention and then MLP or experts
  long hidden = 0;
  long ffn = 0;
  int heads = 0;
  int kv_heads = 0;   // 0: as many as heads
  long head_dim = 0;  // 0: hidden / heads
  long vocabulary = 0;
  Mlp mlp = Mlp::swiglu;
  Norm norm = Norm::rmsnorm;
  bool output_norms = false;  // what attention and feeds give is normed, too
  QkNorm qk_norm = QkNorm::none;
  bool causal = true;
  bool tied_embeddings = false;
  bool rotary = true;
  bool rotary_scaled = false;  // its sines and cosines carry a factor (YaRN)
  bool biases = false;
  AttentionBiases attention_biases = AttentionBiases::none;  // where the others have none
  bool clamped = false;                                      // the inputs of gated activations
  double dropout = 0;
  long window = 0;              // tokens that a query of a window layer sees
  bool window_chunks = false;   // of its own chunk of the sequence, instead of those before it
  bool sinks = false;           // a learned offset of each head's softmax
  bool attention_gate = false;  // what attention gives is gated by the sigmoid of a projection of its own
  std::optional<Mla> mla;
  std::optional<Mamba> mamba;
  std::optional<DeltaNet> delta;
  int experts = 0;  // 0: dense
  int experts_per_token = 0;
  long expert_ffn = 0;       // 0: ffn
  long shared_ffn = 0;       // inner size of the experts that every token visits, together; 0: none
  bool shared_gate = false;  // what these give is gated by a number of each token
  long expert_latent = 0;    // experts work on this many channels, projected to and fro; 0: on the hidden state
  std::optional<NextToken> next_token;
  std::vector<Tower> towers;
  std::string source;

  int kv() const { return mla ? heads : kv_heads > 0 ? kv_heads : heads; }
  bool qkv_biases() const { return biases || attention_biases != AttentionBiases::none; }
  bool output_biases() const { return biases || attention_biases == AttentionBiases::all; }
  long head_size() const { return head_dim > 0 ? head_dim : hidden / heads; }
  long query_width() const { return heads * (mla ? mla->nope + mla->rope : head_size()); }
  // Mean of the keys' and the values' width.
  long kv_width() const { return mla ? heads * (mla->nope + mla->rope + mla->value) / 2 : kv() * head_size(); }
  long output_width() const { return heads * (mla ? mla->value : head_size()); }
  int mlp_matrices() const { return gated(mlp) ? 3 : 2; }
  long expert_size() const { return expert_ffn > 0 ? expert_ffn : ffn; }
  long expert_width() const { return expert_latent > 0 ? expert_latent : hidden; }

  static void describe(Description<Architecture>& d);
};

// A benchmark whose kernels are not modelled: time of one step on one accelerator = fixed + per_sample * local batch,
// gradients and an activity mix. Its network part is simulated all the same.
struct ProfiledWorkload {
  std::string name;
  std::string sample = "sample";
  Time fixed, per_sample;
  Bytes gradients;
  double overlap = 0.5;                                 // share of the gradient exchange hidden behind backward
  std::map<std::string, double> activities;             // shares of the step's own time
  std::map<std::string, double> fixed_activities;       // of the fixed part; empty: as activities
  std::map<std::string, double> evaluation_activities;  // of an evaluated sample; empty: as activities
  Bytes exchange_per_sample;   // all-to-all between all accelerators, forward and again backward
  double split_exchanges = 0;  // when tp accelerators share a sample: exchanges between them a step
  Time evaluation_fixed, evaluation_per_sample;
  std::string accelerator;  // profile of the chip that it was measured on
  std::string source;
  static void describe(Description<ProfiledWorkload>& d);
};

}  // namespace tw
