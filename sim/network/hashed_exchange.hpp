// ECMP of very many flows: how many of them a hash sends over each link is drawn switch by switch, which is how their
// hashes one by one would fall, at the price of the links.
#pragma once

#include <map>
#include <vector>

#include "core/random.hpp"
#include "topology/routing.hpp"

namespace tw::network {

// Of `all` things of which `marked` are marked, how many of `drawn` are (hypergeometric). Exact to rounding where the
// variance is small, else from the normal distribution with its mean and variance.
double draw_marked(double all, double marked, double drawn, SplitMix64& stream);
// Of `flows`, how many choose one of `ways` (binomial).
double draw_way(double flows, int ways, SplitMix64& stream);

// Through a healthy tree: whole numbers of flows that leave each component upwards and enter it from above. Appends
// links and flows. What a switch gets it passes on, and what goes down to a component is what enters it.
void hash_through_tree(const Fabric& fabric, const TreeLevels& tree, const TreeLevels::Traffic& flows,
                       SplitMix64& stream, std::vector<LinkShare>& carried);

// Through any fabric, to one switch: source -> flows.
void hash_towards(const Fabric& fabric, Router& router, int to, const std::map<int, double>& flows, SplitMix64& stream,
                  std::vector<LinkShare>& carried);

}  // namespace tw::network
