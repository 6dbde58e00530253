#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "workload/plan.hpp"

namespace tw {
namespace {

constexpr size_t kLongest = 1000000;

// Writes repeats out: "(t*2|)*2t" -> "tt|tt|t".
class Unroller {
 public:
  explicit Unroller(const std::string& text) : text_(text) {}
  std::string run(std::string& fault) {
    std::string out = list(0);
    if (fault_.empty() && at_ < text_.size()) fault_ = fmt::format("stray '{}' at character {}", text_[at_], at_ + 1);
    fault = fault_;
    return out;
  }

 private:
  std::string list(int depth) {
    std::string out;
    if (depth > 16) fault_ = "groups nest too deep";
    while (fault_.empty() && at_ < text_.size() && text_[at_] != ')') {
      std::string unit;
      if (text_[at_] == '(') {
        ++at_;
        unit = list(depth + 1);
        if (fault_.empty() && at_ >= text_.size()) fault_ = "a group has no ')'";
        ++at_;
      } else if (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
        unit = std::string(number(), 't');
      } else {
        unit = text_[at_++];
        if (std::string("VEtmL| ").find(unit) == std::string::npos)
          fault_ = fmt::format("'{}' at character {}", unit, at_);
      }
      size_t times = 1;
      if (at_ < text_.size() && text_[at_] == '*') {
        ++at_;
        times = number();
        if (times < 1) fault_ = fmt::format("no number after '*' at character {}", at_);
      }
      if (unit.size() * times + out.size() > kLongest) fault_ = "too long";
      for (size_t i = 0; i < times && fault_.empty(); ++i) out += unit;
    }
    return out;
  }
  size_t number() {
    size_t value = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 && value < kLongest; ++at_)
      value = value * 10 + static_cast<size_t>(text_[at_] - '0');
    return std::min(value, kLongest);
  }

  const std::string& text_;
  size_t at_ = 0;
  std::string fault_;
};

}  // namespace

std::string parse_layout(const std::string& text, std::vector<int>& layers, std::string* letters) {
  std::string fault;
  const std::string out = Unroller(text).run(fault);
  if (!fault.empty()) return fault;
  for (const char once : {'V', 'E', 'L'})
    if (std::count(out.begin(), out.end(), once) > 1) return fmt::format("{} stands there more than once", once);
  if (letters != nullptr) *letters = out;
  layers.assign(1, 0);
  for (size_t i = 0; i < out.size(); ++i) {
    const bool last = out.find('|', i) == std::string::npos;
    if (out[i] == '|') layers.push_back(0);
    if (out[i] == 't') ++layers.back();
    if ((out[i] == 'E' || out[i] == 'V') && layers.size() > 1)
      return "embedding (E) and towers (V) stand in the first chunk";
    if ((out[i] == 'm' || out[i] == 'L') && !last) return "next-token layers (m) and head (L) stand in the last chunk";
  }
  return "";
}

namespace {

// Layers of a chunk where embedding, head and next-token layers count as layers; 0: they do not divide so.
int counted_with_ends(int layers, int chunks, int further) {
  const int all = layers + 2 + further;
  return chunks > 1 && all % chunks == 0 && all / chunks > further ? all / chunks : 0;
}

}  // namespace

bool even_chunks(int layers, int chunks, int further) {
  return layers % chunks == 0 || counted_with_ends(layers, chunks, further) > 0;
}

std::vector<int> layers_of_chunks(int layers, int pp, int vp, int further) {
  const int chunks = pp * vp, with_ends = counted_with_ends(layers, chunks, further);
  std::vector<int> count(static_cast<size_t>(chunks), layers / chunks);
  const bool divides = layers % chunks == 0;
  if (with_ends > 0 && !(divides && further == 0)) {
    std::fill(count.begin(), count.end(), with_ends);
    --count.front();
    count.back() -= 1 + further;
    return count;
  }
  for (int i = 0; i < layers % chunks; ++i) ++count[static_cast<size_t>(i)];
  return count;
}

int next_token_layers(const Architecture& n) {
  return n.next_token ? n.next_token->depth : 0;
}

std::vector<int> layers_of_chunks(const Architecture& network, const Plan& plan) {
  std::vector<int> count;
  const auto chunks = static_cast<size_t>(plan.pp) * static_cast<size_t>(plan.vp);
  if (!plan.layout.empty() && parse_layout(plan.layout, count).empty() && count.size() == chunks) return count;
  return layers_of_chunks(network.layers, plan.pp, plan.vp, next_token_layers(network));
}

}  // namespace tw
