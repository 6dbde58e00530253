// What is wrong with towers.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.hpp"
#include "workload/tower.hpp"

namespace tw {
namespace {

// Keys of one tower that have to agree.
void check_tower(const Tower& w, const ReadContext& at) {
  std::vector<LayerKind> kinds;
  const std::string wrong = w.pattern.empty() ? "" : parse_pattern(w.pattern, kinds);
  const auto is = [](Mixer mixer) {
    return [mixer](const LayerKind& k) { return k.mixer == mixer && k.feed == Feed::mlp; };
  };
  const bool windows = std::any_of(kinds.begin(), kinds.end(), is(Mixer::window));
  if (!wrong.empty())
    return at.at("pattern").fault("pattern: " + wrong, "attention+mlp or window+mlp; n*layer, n*(layers)");
  if (!kinds.empty() && static_cast<int>(kinds.size()) != w.layers)
    at.at("pattern").fault(fmt::format("the pattern has {} layers, not {}", kinds.size(), w.layers),
                           fmt::format("layers = {}", kinds.size()));
  if (!std::all_of(kinds.begin(), kinds.end(),
                   [&](const LayerKind& k) { return is(Mixer::attention)(k) || is(Mixer::window)(k); }))
    at.at("pattern").fault("a tower has no such layers", "attention+mlp or window+mlp");
  if (windows != (w.window > 0))
    at.at("window").fault(windows ? "window layers need a window" : "window stands in no layer",
                          windows ? "tokens of a group" : "a pattern that uses it");
  if (w.window > w.tokens)
    at.at("window").fault(fmt::format("a window of {} tokens exceeds the {} of an item", w.window, w.tokens),
                          "at most tokens");
  if (w.head_dim == 0 && w.hidden % w.heads != 0)
    at.at("heads").fault(fmt::format("heads = {} does not divide hidden ({})", w.heads, w.hidden),
                         "a divisor of hidden, or head_dim");
  if ((w.patch > 0) == (w.vocabulary > 0))
    at.fault(
        w.patch > 0 ? "both \"patch\" and \"vocabulary\" are given" : "neither \"patch\" nor \"vocabulary\" is given",
        "exactly one: values of a patch, or tokens that are looked up");
  if (w.class_tokens >= w.tokens)
    at.at("class_tokens")
        .fault(fmt::format("class_tokens = {} of {} tokens", w.class_tokens, w.tokens), "below tokens");
  else if ((w.tokens - w.class_tokens) % w.merge != 0)
    at.at("merge").fault(fmt::format("merge = {} does not divide the {} tokens", w.merge, w.tokens - w.class_tokens),
                         "a divisor of tokens less class_tokens");
  for (size_t i = 0; i < w.projector.size(); ++i)
    if (w.projector[i] < 1 || w.projector[i] > 10000000)
      at.at("projector").at(i).fault(fmt::format("no width: {}", w.projector[i]), "1 to 10000000");
}

std::vector<std::string> tower_names(const Architecture& n) {
  std::vector<std::string> names;
  for (const Tower& w : n.towers) names.push_back(w.name);
  return names;
}

}  // namespace

void check_towers(const Architecture& n, const ReadContext& at) {
  std::set<std::string> names;
  for (size_t i = 0; i < n.towers.size(); ++i) {
    const ReadContext here = at.at("towers").at(i);
    if (n.towers[i].name.empty() || !names.insert(n.towers[i].name).second)
      here.at("name").fault(fmt::format("the name \"{}\" is {}", printable(n.towers[i].name),
                                        n.towers[i].name.empty() ? "empty" : "another tower's"),
                            "a name of its own");
    check_tower(n.towers[i], here);
  }
  if (!n.towers.empty() && n.vocabulary == 0)
    at.at("towers").fault("towers need an embedding, among whose tokens theirs stand", "vocabulary above 0");
}

void check_towers(const Architecture& n, const Training& t, const ReadContext& root) {
  const std::vector<std::string> names = tower_names(n);
  long made = 0;
  for (const Tower& w : n.towers) made += w.made() * w.items;
  if (made > t.sequence)
    root.at("network").at("towers").fault(
        fmt::format("the towers make {} tokens of a sample, whose sequence has {}", made, t.sequence),
        fmt::format("a sequence of at least {}, or fewer items", made));
  for (size_t i = 0; i < t.frozen_towers.size(); ++i)
    if (std::find(names.begin(), names.end(), t.frozen_towers[i]) == names.end())
      root.at("training")
          .at("frozen_towers")
          .at(i)
          .fault(fmt::format("{} has no tower \"{}\"", n.name, printable(t.frozen_towers[i])),
                 names.empty() ? "none" : one_of(names));
}

}  // namespace tw
