#include "workload/architecture.hpp"

#include "core/codec.hpp"

namespace tw {

std::vector<std::pair<std::string, Mlp>> Choices<Mlp>::table() {
  return {{"swiglu", Mlp::swiglu}, {"gelu", Mlp::gelu}};
}

std::vector<std::pair<std::string, Norm>> Choices<Norm>::table() {
  return {{"rmsnorm", Norm::rmsnorm}, {"layernorm", Norm::layernorm}};
}

void Architecture::describe(Description<Architecture>& d) {
  d.object("network", "The architecture of a transformer.");
  d.required("name", &Architecture::name, "name");
  d.required("layers", &Architecture::layers, "transformer layers", between(1, 100000));
  d.required("hidden", &Architecture::hidden, "hidden size", between(1, 1e7));
  d.required("ffn", &Architecture::ffn, "inner size of the MLP", between(1, 1e7));
  d.required("heads", &Architecture::heads, "attention (query) heads", between(1, 100000));
  d.optional("kv_heads", &Architecture::kv_heads, "key and value heads (grouped-query attention); 0: as heads",
             between(0, 100000));
  d.optional("head_dim", &Architecture::head_dim, "size of a head; 0: hidden / heads", between(0, 1e6));
  d.required("vocabulary", &Architecture::vocabulary,
             "vocabulary, padded as trained; 0: a stack of layers without embedding and head", between(0, 1e8));
  d.optional("mlp", &Architecture::mlp, "gated (three matrices) or plain (two)");
  d.optional("norm", &Architecture::norm, "normalization");
  d.optional("causal", &Architecture::causal, "causal attention does half the score work");
  d.optional("tied_embeddings", &Architecture::tied_embeddings, "the head shares the embedding's weights");
  d.optional("rotary", &Architecture::rotary, "rotary position embedding");
  d.optional("biases", &Architecture::biases, "linear layers carry biases");
  d.optional("dropout", &Architecture::dropout, "dropout probability", between(0, 1));
  d.optional("experts", &Architecture::experts, "experts of a mixture-of-experts MLP; 0: dense", between(0, 100000));
  d.optional("experts_per_token", &Architecture::experts_per_token, "experts each token visits", between(0, 100000));
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
