// The stack of a network, layer by layer, from its pattern.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "workload/architecture.hpp"

namespace tw {

struct Training;

// A pattern lists layers in order. A layer is a mixer, a feed, or both joined by +: attention, window, mamba, delta;
// mlp, experts. `n*layer` and `n*(layers)` repeat: "3*attention+mlp 58*attention+experts". The letters of hybrid models
// are understood, too: M mamba, * attention, E experts, - mlp, as in "MEMEM*EME". Returns what is wrong with it; empty
// when nothing is.
std::string parse_pattern(const std::string& text, std::vector<LayerKind>& out);

// All layers of the stack, in order; those of a valid pattern.
std::vector<LayerKind> layer_kinds(const Architecture& network);
// Of one next-token head; empty when there is none.
std::vector<LayerKind> next_token_kinds(const Architecture& network);

// How many layers of each kind stand in [first, first + count).
using KindCounts = std::vector<std::pair<LayerKind, int>>;
KindCounts count_kinds(const std::vector<LayerKind>& kinds, int first, int count);

// Keys a query sees on average in one sample of `sequence` tokens. `causal_half` false: the convention that counts full
// scores where a layer sees the whole sequence.
double mean_keys(const Architecture& network, Mixer mixer, double sequence, bool causal_half);

// Faults of a network by itself: the pattern and the parts that its layers need. `at` is the network's place.
void check_architecture(const Architecture& network, const ReadContext& at);
// Of its towers, and of these with the training; `root` is the scenario's place.
void check_towers(const Architecture& network, const ReadContext& at);
void check_towers(const Architecture& network, const Training& training, const ReadContext& root);

}  // namespace tw
