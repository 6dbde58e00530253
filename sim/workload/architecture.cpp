#include "workload/architecture.hpp"

#include "core/codec.hpp"

namespace tw {

void Mla::describe(Description<Mla>& d) {
  d.object("mla", "Multi-head latent attention.");
  d.optional("query_rank", &Mla::query_rank, "rank of the queries' projection; 0: none", between(0, 1e6));
  d.required("kv_rank", &Mla::kv_rank, "rank of the keys' and values' projection", between(1, 1e6));
  d.required("nope", &Mla::nope, "size of a query and key head without position", between(0, 1e5));
  d.required("rope", &Mla::rope, "and with rotary position", between(0, 1e5));
  d.required("value", &Mla::value, "size of a value head", between(1, 1e5));
}

void Mamba::describe(Description<Mamba>& d) {
  d.object("mamba", "A Mamba-2 mixer.");
  d.required("heads", &Mamba::heads, "heads", between(1, 100000));
  d.required("head_dim", &Mamba::head_dim, "channels of a head", between(1, 1e5));
  d.required("state", &Mamba::state, "size of the state of a channel", between(1, 1e5));
  d.optional("groups", &Mamba::groups, "groups of heads that share input and output maps", between(1, 100000));
  d.optional("convolution", &Mamba::convolution, "taps of the convolution before the scan", between(1, 1000));
  d.optional("chunk", &Mamba::chunk, "tokens that the scan takes together", between(1, 100000));
}

void DeltaNet::describe(Description<DeltaNet>& d) {
  d.object("delta", "A gated delta rule (Gated DeltaNet), the linear attention of Qwen3-Next and Qwen3.5.");
  d.required("key_heads", &DeltaNet::key_heads, "heads of queries and keys", between(1, 100000));
  d.required("value_heads", &DeltaNet::value_heads, "heads of values, a multiple of those of keys", between(1, 100000));
  d.required("key_dim", &DeltaNet::key_dim, "size of a query and key head", between(1, 1e5));
  d.required("value_dim", &DeltaNet::value_dim, "size of a value head", between(1, 1e5));
  d.optional("convolution", &DeltaNet::convolution, "taps of the convolution before the rule", between(1, 1000));
}

void NextToken::describe(Description<NextToken>& d) {
  d.object("next_token", "Layers that predict further tokens (multi-token prediction).");
  d.required("depth", &NextToken::depth, "further tokens that are predicted; 0: none", between(0, 100));
  d.optional("pattern", &NextToken::pattern, "layers for each of them, as the network's pattern; absent: its last");
  d.optional("shared", &NextToken::shared, "one set of weights serves all of them");
}

void Tower::describe(Description<Tower>& d) {
  d.object("tower", "A stack of its own, such as an encoder of images, whose last states stand among the tokens.");
  d.required("name", &Tower::name, "name, by which training freezes it");
  d.required("layers", &Tower::layers, "layers", between(1, 1000));
  d.optional("pattern", &Tower::pattern,
             "layers in order, attention+mlp or window+mlp, with repeats as in a network's; absent: attention+mlp");
  d.required("hidden", &Tower::hidden, "hidden size", between(1, 1e7));
  d.required("ffn", &Tower::ffn, "inner size of the MLP", between(1, 1e7));
  d.required("heads", &Tower::heads, "heads, of keys and values too", between(1, 100000));
  d.optional("head_dim", &Tower::head_dim, "size of a head; 0: hidden / heads", between(0, 1e6));
  d.optional("mlp", &Tower::mlp, "gated (three matrices) or plain (two)");
  d.optional("norm", &Tower::norm, "normalization");
  d.optional("biases", &Tower::biases, "linear layers of its layers carry biases");
  d.optional("rotary", &Tower::rotary, "rotary position embedding");
  d.optional("window", &Tower::window, "tokens of a group that see each other in window layers", between(0, 1e9));
  d.required("tokens", &Tower::tokens, "tokens of an item (image, tile, clip), class tokens among them",
             between(1, 1e9));
  d.optional("items", &Tower::items, "items of a sample", between(1, 4096));
  d.optional("patch", &Tower::patch, "values of a token that are projected to the hidden size, as 14 x 14 x 3; 0: none",
             between(0, 1e7));
  d.optional("vocabulary", &Tower::vocabulary, "in place of patches: tokens that are looked up", between(0, 1e8));
  d.optional("positions", &Tower::positions, "learned position embeddings", between(0, 1e9));
  d.optional("class_tokens", &Tower::class_tokens, "learned tokens that are left out behind the layers",
             between(0, 100000));
  d.optional("end_norms", &Tower::end_norms, "norms beside those of the layers: behind them (1), before them too (2)",
             between(0, 2));
  d.optional("merge", &Tower::merge, "tokens that are joined to one before the projector (pixel shuffle)",
             between(1, 100000));
  d.optional("projector", &Tower::projector,
             "widths between the products that bring its states to the network's hidden size, with an activation at "
             "each; absent: one product");
  d.optional("projector_biases", &Tower::projector_biases, "the projector's products carry biases");
  d.optional("projectors", &Tower::projectors,
             "projectors, alike: of the last states and of those of layers on the way", between(1, 1000));
}

void Architecture::describe(Description<Architecture>& d) {
  d.object("network", "The architecture of a transformer.");
  d.required("name", &Architecture::name, "name");
  d.required("layers", &Architecture::layers, "transformer layers", between(1, 100000));
  d.optional(
      "pattern", &Architecture::pattern,
      "layers in order, such as \"3*attention+mlp 58*attention+experts\": attention, window, mamba or delta, +mlp "
      "or +experts, or one alone; n*layer and n*(layers) repeat; or letters M, *, E, -; absent: all alike");
  d.required("hidden", &Architecture::hidden, "hidden size", between(1, 1e7));
  d.required("ffn", &Architecture::ffn, "inner size of the MLP (of the experts, where expert_ffn is absent)",
             between(1, 1e7));
  d.required("heads", &Architecture::heads, "attention (query) heads", between(1, 100000));
  d.optional("kv_heads", &Architecture::kv_heads, "key and value heads (grouped-query attention); 0: as heads",
             between(0, 100000));
  d.optional("head_dim", &Architecture::head_dim, "size of a head; 0: hidden / heads", between(0, 1e6));
  d.required("vocabulary", &Architecture::vocabulary,
             "vocabulary, padded as trained; 0: a stack of layers without embedding and head", between(0, 1e8));
  d.optional("mlp", &Architecture::mlp, "gated by SiLU or GELU (three matrices) or plain (two), of experts too");
  d.optional("norm", &Architecture::norm, "normalization");
  d.optional("output_norms", &Architecture::output_norms,
             "what attention and feeds give is normed before it is added, beside what they take");
  d.optional("qk_norm", &Architecture::qk_norm, "norms of queries and keys: over each head or their whole width");
  d.optional("causal", &Architecture::causal, "causal attention does half the score work");
  d.optional("tied_embeddings", &Architecture::tied_embeddings, "the head shares the embedding's weights");
  d.optional("rotary", &Architecture::rotary, "rotary position embedding");
  d.optional("rotary_scaled", &Architecture::rotary_scaled,
             "its sines and cosines carry a factor (YaRN), which fused kernels of training frameworks do not know");
  d.optional("biases", &Architecture::biases, "linear layers carry biases");
  d.optional("attention_biases", &Architecture::attention_biases,
             "where other layers carry none: those of queries, keys and values do, or of the output, too");
  d.optional("clamped", &Architecture::clamped, "inputs of the gated activation are clamped");
  d.optional("dropout", &Architecture::dropout, "dropout probability", between(0, 1));
  d.optional("window", &Architecture::window, "tokens that a query of a window layer sees", between(0, 1e9));
  d.optional("window_chunks", &Architecture::window_chunks,
             "window layers see their own chunk of the sequence, not the tokens before theirs");
  d.optional("sinks", &Architecture::sinks, "each head's softmax has a learned offset");
  d.optional("attention_gate", &Architecture::attention_gate,
             "what attention gives is gated by a projection of its own, as wide");
  d.optional("mla", &Architecture::mla, "latent attention instead of key and value heads");
  d.optional("mamba", &Architecture::mamba, "the mixer of mamba layers");
  d.optional("delta", &Architecture::delta, "the mixer of delta layers");
  d.optional("experts", &Architecture::experts, "experts of a mixture-of-experts MLP; 0: dense", between(0, 100000));
  d.optional("experts_per_token", &Architecture::experts_per_token, "experts each token visits", between(0, 100000));
  d.optional("expert_ffn", &Architecture::expert_ffn, "inner size of an expert; 0: ffn", between(0, 1e7));
  d.optional("shared_ffn", &Architecture::shared_ffn,
             "inner size of the experts that every token visits, together; 0: none", between(0, 1e7));
  d.optional("shared_gate", &Architecture::shared_gate,
             "what the experts that every token visits give is gated by a number of each token");
  d.optional("expert_latent", &Architecture::expert_latent,
             "channels that routed experts work on, projected to and fro; 0: the hidden size", between(0, 1e7));
  d.optional("next_token", &Architecture::next_token, "layers that predict further tokens");
  d.optional("towers", &Architecture::towers, "stacks of their own whose states stand among the tokens");
  d.optional("source", &Architecture::source, "where the numbers come from");
}

void ProfiledWorkload::describe(Description<ProfiledWorkload>& d) {
  d.object("profiled_workload", "A benchmark as fixed + per-sample time, gradient bytes and an activity mix.");
  d.required("name", &ProfiledWorkload::name, "name");
  d.optional("sample", &ProfiledWorkload::sample, "what one sample is");
  d.required("fixed", &ProfiledWorkload::fixed, "time of a step that does not depend on the batch");
  d.required("per_sample", &ProfiledWorkload::per_sample, "time of one sample on one accelerator");
  d.required("gradients", &ProfiledWorkload::gradients, "gradient bytes exchanged each step");
  d.optional("overlap", &ProfiledWorkload::overlap, "share of the gradient exchange that backward can hide",
             between(0, 1));
  d.required("activities", &ProfiledWorkload::activities,
             "share of the step's own time by activity, under the board limit of the runs it was fitted on");
  d.optional("fixed_activities", &ProfiledWorkload::fixed_activities,
             "the same of the fixed part alone (optimizer, launches, hand-over), which draws less; absent: as "
             "activities");
  d.optional("evaluation_activities", &ProfiledWorkload::evaluation_activities,
             "the same of an evaluated sample, where it differs: a detector's evaluation is much of it on the host "
             "(default: those of activities)");
  d.optional("exchange_per_sample", &ProfiledWorkload::exchange_per_sample,
             "bytes that each sample sends between accelerators in an all-to-all, forward and again backward "
             "(embeddings)");
  d.optional("split_exchanges", &ProfiledWorkload::split_exchanges,
             "exchanges of a step between the tp accelerators that share a sample (halos, statistics)", at_least(0));
  d.optional("evaluation_fixed", &ProfiledWorkload::evaluation_fixed, "time of an evaluation beside its samples");
  d.optional("evaluation_per_sample", &ProfiledWorkload::evaluation_per_sample,
             "time of one evaluated sample on one accelerator");
  d.optional("accelerator", &ProfiledWorkload::accelerator,
             "profile of the chip that it was measured on; elsewhere times follow peaks and bandwidths by activity");
  d.optional("source", &ProfiledWorkload::source, "where the numbers come from");
}

}  // namespace tw
