#include "workload/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tw {
namespace {

constexpr size_t kMostLayers = 100000;
constexpr const char* kForms =
    "attention, window, mamba or delta, +mlp or +experts, or one of these alone; n*layer, n*(layers)";

class Parser {
 public:
  Parser(const std::string& text, std::vector<LayerKind>& out) : text_(text), out_(out) {}

  std::string run() {
    list(0);
    if (fault_.empty() && at_ < text_.size()) fault_ = fmt::format("stray '{}' at character {}", text_[at_], at_ + 1);
    if (fault_.empty() && out_.empty()) fault_ = "no layer";
    return fault_;
  }

 private:
  void list(int depth) {
    if (depth > 16) return fail("groups nest too deep");
    for (skip(); fault_.empty() && at_ < text_.size() && text_[at_] != ')'; skip()) item(depth);
  }
  void item(int depth) {
    const long times = repeat();
    if (!fault_.empty()) return;
    const size_t first = out_.size();
    if (at_ < text_.size() && text_[at_] == '(') {
      ++at_;
      list(depth + 1);
      if (!fault_.empty()) return;
      if (at_ >= text_.size()) return fail("a group has no ')'");
      ++at_;
    } else {
      layer();
    }
    if (!fault_.empty()) return;
    const std::vector<LayerKind> unit(out_.begin() + static_cast<long>(first), out_.end());
    if (unit.size() * static_cast<size_t>(times) > kMostLayers) return fail("more than 100000 layers");
    for (long i = 1; i < times; ++i) out_.insert(out_.end(), unit.begin(), unit.end());
  }
  long repeat() {
    size_t end = at_;
    while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end])) != 0) ++end;
    if (end == at_) return 1;
    const std::string digits = text_.substr(at_, end - at_);
    if (end >= text_.size() || text_[end] != '*') return fail(fmt::format("{} is not followed by '*'", digits)), 0;
    at_ = end + 1;
    const long times = digits.size() > 6 ? 0 : std::stol(digits);
    if (times < 1) fail(fmt::format("cannot repeat {} times", digits));
    return times;
  }
  void layer() {
    LayerKind kind{Mixer::none, Feed::none};
    do {
      if (at_ < text_.size() && text_[at_] == '+') ++at_;
      const size_t begin = at_;
      while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
      const std::string word = text_.substr(begin, at_ - begin);
      const Mixer mixer = word == "attention" ? Mixer::attention
                          : word == "window"  ? Mixer::window
                          : word == "mamba"   ? Mixer::mamba
                          : word == "delta"   ? Mixer::delta
                                              : Mixer::none;
      const Feed feed = word == "mlp" ? Feed::mlp : word == "experts" ? Feed::experts : Feed::none;
      if (mixer == Mixer::none && feed == Feed::none)
        return fail(word.empty() ? fmt::format("no layer at character {}", begin + 1)
                                 : fmt::format("'{}' is no part of a layer", word));
      if ((mixer != Mixer::none && kind.mixer != Mixer::none) || (feed != Feed::none && kind.feed != Feed::none))
        return fail(fmt::format("'{}' is a second one in its layer", word));
      if (mixer != Mixer::none && kind.feed != Feed::none) return fail("a layer mixes first: attention+mlp");
      if (mixer != Mixer::none) kind.mixer = mixer;
      if (feed != Feed::none) kind.feed = feed;
    } while (at_ < text_.size() && text_[at_] == '+');
    out_.push_back(kind);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == ',')) ++at_;
  }
  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }

  const std::string& text_;
  std::vector<LayerKind>& out_;
  size_t at_ = 0;
  std::string fault_;
};

}  // namespace

std::string parse_pattern(const std::string& text, std::vector<LayerKind>& out) {
  out.clear();
  if (!text.empty() && text.find_first_not_of("ME*-") == std::string::npos) {
    for (const char c : text)
      out.push_back(c == 'M'   ? LayerKind{Mixer::mamba, Feed::none}
                    : c == '*' ? LayerKind{Mixer::attention, Feed::none}
                    : c == 'E' ? LayerKind{Mixer::none, Feed::experts}
                               : LayerKind{Mixer::none, Feed::mlp});
    return "";
  }
  return Parser(text, out).run();
}

std::vector<LayerKind> layer_kinds(const Architecture& n) {
  std::vector<LayerKind> kinds;
  if (!n.pattern.empty() && parse_pattern(n.pattern, kinds).empty()) return kinds;
  kinds.assign(static_cast<size_t>(n.layers),
               {n.window > 0 ? Mixer::window : Mixer::attention, n.experts > 0 ? Feed::experts : Feed::mlp});
  return kinds;
}

std::vector<LayerKind> next_token_kinds(const Architecture& n) {
  std::vector<LayerKind> kinds;
  if (!n.next_token || n.next_token->depth == 0) return kinds;
  if (!n.next_token->pattern.empty() && parse_pattern(n.next_token->pattern, kinds).empty()) return kinds;
  return {layer_kinds(n).back()};
}

KindCounts count_kinds(const std::vector<LayerKind>& kinds, int first, int count) {
  KindCounts counts;
  for (int i = first; i < first + count && i < static_cast<int>(kinds.size()); ++i) {
    const LayerKind& kind = kinds[static_cast<size_t>(i)];
    const auto at = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == kind; });
    if (at != counts.end())
      ++at->second;
    else
      counts.emplace_back(kind, 1);
  }
  return counts;
}

double mean_keys(const Architecture& n, Mixer mixer, double sequence, bool causal_half) {
  const double all = causal_half && n.causal ? sequence / 2 : sequence;
  const auto window = static_cast<double>(n.window);
  if (mixer != Mixer::window || window >= sequence) return all;
  if (n.window_chunks) return causal_half && n.causal ? window / 2 : window;
  // The first queries see fewer keys than a window holds.
  return causal_half && n.causal ? window - window * window / (2 * sequence) : window;
}

void check_architecture(const Architecture& n, const ReadContext& at) {
  std::vector<LayerKind> kinds, further;
  if (!n.pattern.empty()) {
    const std::string wrong = parse_pattern(n.pattern, kinds);
    if (!wrong.empty()) return at.at("pattern").fault(fmt::format("pattern: {}", wrong), kForms);
    if (static_cast<int>(kinds.size()) != n.layers)
      return at.at("pattern").fault(fmt::format("the pattern has {} layers, not {}", kinds.size(), n.layers),
                                    fmt::format("layers = {}", kinds.size()));
  }
  if (n.next_token && !n.next_token->pattern.empty()) {
    const std::string wrong = parse_pattern(n.next_token->pattern, further);
    if (!wrong.empty()) return at.at("next_token").at("pattern").fault(fmt::format("pattern: {}", wrong), kForms);
  }
  kinds = layer_kinds(n);
  for (const LayerKind& k : next_token_kinds(n)) kinds.push_back(k);
  const auto has = [&](auto test) { return std::any_of(kinds.begin(), kinds.end(), test); };
  const auto needs = [&](bool uses, bool there, const char* key, const char* what) {
    if (uses && !there) at.fault(fmt::format("{} need \"{}\"", what, key), fmt::format("add \"{}\"", key));
    if (!uses && there) at.at(key).fault(fmt::format("{} stands in no layer", key), "a pattern that uses it");
  };
  needs(has([](const LayerKind& k) { return k.mixer == Mixer::window; }), n.window > 0, "window", "window layers");
  needs(has([](const LayerKind& k) { return k.mixer == Mixer::mamba; }), n.mamba.has_value(), "mamba", "mamba layers");
  needs(has([](const LayerKind& k) { return k.mixer == Mixer::delta; }), n.delta.has_value(), "delta", "delta layers");
  const bool experts = has([](const LayerKind& k) { return k.feed == Feed::experts; });
  needs(experts, n.experts > 0, "experts", "expert layers");
  if (experts && n.experts > 0 && (n.experts_per_token < 1 || n.experts_per_token > n.experts))
    at.at("experts_per_token")
        .fault(fmt::format("experts_per_token = {} of {} experts", n.experts_per_token, n.experts),
               fmt::format("allowed: 1 to {}", n.experts));
  const auto of_experts = [&](bool given, const char* key) {
    if (given && !experts) at.at(key).fault(fmt::format("{} without expert layers", key), "a network with experts");
  };
  of_experts(n.experts == 0 && n.experts_per_token > 0, "experts_per_token");
  of_experts(n.shared_gate, "shared_gate");
  of_experts(n.expert_ffn > 0, "expert_ffn"), of_experts(n.shared_ffn > 0, "shared_ffn");
  of_experts(n.expert_latent > 0, "expert_latent");
  const bool attends = has([](const LayerKind& k) { return k.mixer == Mixer::attention || k.mixer == Mixer::window; });
  if (attends && !n.mla && n.head_dim == 0 && n.hidden % n.heads != 0)
    at.at("heads").fault(fmt::format("heads = {} does not divide hidden ({})", n.heads, n.hidden),
                         "a divisor of hidden, or head_dim");
  if (n.kv_heads > 0 && n.heads % n.kv_heads != 0)
    at.at("kv_heads")
        .fault(fmt::format("kv_heads = {} does not divide {} heads", n.kv_heads, n.heads), "a divisor of heads");
  if (n.attention_biases != AttentionBiases::none && (n.mla || n.biases || !attends))
    at.at("attention_biases")
        .fault(fmt::format("attention_biases {}", n.mla      ? "with latent attention"
                                                  : n.biases ? "beside biases, which are all"
                                                             : "without attention"),
               "leave attention_biases out");
  if (n.mla && n.kv_heads > 0 && n.kv_heads != n.heads)
    at.at("kv_heads").fault("latent attention has keys and values for every head", "leave kv_heads out");
  if (n.mamba && n.mamba->heads % n.mamba->groups != 0)
    at.at("mamba").at("groups").fault(
        fmt::format("groups = {} does not divide {} Mamba heads", n.mamba->groups, n.mamba->heads),
        "a divisor of heads");
  if (n.delta && n.delta->value_heads % n.delta->key_heads != 0)
    at.at("delta")
        .at("value_heads")
        .fault(fmt::format("{} value heads are no multiple of {} key heads", n.delta->value_heads, n.delta->key_heads),
               "a multiple of key_heads");
  if (n.attention_gate && (n.mla || !attends))
    at.at("attention_gate")
        .fault(n.mla ? "no gate of latent attention is known" : "attention_gate without attention",
               "leave attention_gate out");
  if (n.shared_gate && n.shared_ffn == 0)
    at.at("shared_gate").fault("shared_gate without shared experts", "shared_ffn above 0");
  check_towers(n, at);
}

}  // namespace tw
