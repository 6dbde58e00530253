// Where the ranks of a plan stand, and who exchanges with whom.
#pragma once

#include <vector>

#include "network/algorithm.hpp"
#include "topology/fabric.hpp"
#include "workload/plan.hpp"

namespace tw {

// TP innermost, then CP, DP, PP, on nodes in the order of `nodes`.
class RankGrid {
 public:
  RankGrid(const Plan& plan, const Fabric& fabric, const std::vector<int>& nodes)
      : plan_(plan), fabric_(fabric), nodes_(nodes) {}
  network::Rank at(int tp, int cp, int dp, int pp) const {
    const int r = tp + plan_.tp * (cp + plan_.cp * (dp + plan_.dp * pp));
    return {nodes_[static_cast<size_t>(r / fabric_.gpus)], r % fabric_.gpus};
  }
  network::Rank of_stage(int r, int stage) const {
    return at(r % plan_.tp, r / plan_.tp % plan_.cp, r / plan_.tp / plan_.cp, stage);
  }
  // All groups of `stage` and replica whose members differ in one coordinate.
  std::vector<std::vector<network::Rank>> tp_groups(int dp, int stage = 0) const {
    std::vector<std::vector<network::Rank>> groups;
    for (int c = 0; c < plan_.cp; ++c) {
      groups.emplace_back();
      for (int t = 0; t < plan_.tp; ++t) groups.back().push_back(at(t, c, dp, stage));
    }
    return groups;
  }
  std::vector<std::vector<network::Rank>> cp_groups(int dp, int stage = 0) const {
    std::vector<std::vector<network::Rank>> groups;
    for (int t = 0; t < plan_.tp; ++t) {
      groups.emplace_back();
      for (int c = 0; c < plan_.cp; ++c) groups.back().push_back(at(t, c, dp, stage));
    }
    return groups;
  }
  // The ranks of a stage, TP innermost, are cut into those that share one expert, those with different experts, and
  // those that hold the same: expert parallelism takes neighbouring ranks.
  // `block`: one of the sets of ranks that hold all experts.
  std::vector<std::vector<network::Rank>> ep_groups(int block = 0, int stage = 0) const {
    std::vector<std::vector<network::Rank>> groups;
    const int first = block * plan_.ep * plan_.expert_tp();
    for (int t = 0; t < plan_.expert_tp(); ++t) {
      groups.emplace_back();
      for (int e = 0; e < plan_.ep; ++e) groups.back().push_back(of_stage(first + t + plan_.expert_tp() * e, stage));
    }
    return groups;
  }
  std::vector<std::vector<network::Rank>> expert_gradient_groups(int stage) const {
    std::vector<std::vector<network::Rank>> groups;
    const int holders = plan_.ep * plan_.expert_tp();
    for (int first = 0; first < holders; ++first) {
      groups.emplace_back();
      for (int r = first; r < plan_.tp * plan_.cp * plan_.dp; r += holders) groups.back().push_back(of_stage(r, stage));
    }
    return groups;
  }
  std::vector<std::vector<network::Rank>> expert_tp_groups(int dp = 0, int stage = 0) const {
    std::vector<std::vector<network::Rank>> groups;
    const int ranks = plan_.tp * plan_.cp;
    for (int first = dp * ranks; first < (dp + 1) * ranks; first += plan_.expert_tp()) {
      groups.emplace_back();
      for (int t = 0; t < plan_.expert_tp(); ++t) groups.back().push_back(of_stage(first + t, stage));
    }
    return groups;
  }
  // Gradients are the same over data and context parallel ranks; neighbours of them share states.
  std::vector<std::vector<network::Rank>> gradient_groups(int stage) const {
    return cut(stage, plan_.sharded_over(), 1);
  }
  // All that hold the same parameters before states are shared.
  std::vector<std::vector<network::Rank>> replica_groups(int stage) const { return cut(stage, plan_.dp * plan_.cp, 1); }
  // The ranks of the shard groups that hold the same piece.
  std::vector<std::vector<network::Rank>> piece_groups(int stage) const {
    return cut(stage, plan_.dp * plan_.cp / plan_.sharded_over(), plan_.sharded_over());
  }
  std::vector<network::Rank> stage_group(int stage) const {
    std::vector<network::Rank> all;
    for (int r = 0; r < plan_.tp * plan_.cp * plan_.dp; ++r) all.push_back(of_stage(r, stage));
    return all;
  }
  std::vector<std::vector<network::Rank>> hand_over_pairs(int dp, int from, int to) const {
    std::vector<std::vector<network::Rank>> pairs;
    for (int c = 0; c < plan_.cp; ++c)
      for (int t = 0; t < plan_.tp; ++t) pairs.push_back({at(t, c, dp, from), at(t, c, dp, to)});
    return pairs;
  }

 private:
  // Groups of `size` data and context parallel ranks each, `stride` apart.
  std::vector<std::vector<network::Rank>> cut(int stage, int size, int stride) const {
    std::vector<std::vector<network::Rank>> groups;
    const int all = plan_.dp * plan_.cp;
    for (int t = 0; t < plan_.tp; ++t)
      for (int block = 0; block < all; block += size * stride)
        for (int first = block; first < block + stride; ++first) {
          groups.emplace_back();
          for (int i = 0; i < size; ++i)
            groups.back().push_back(at(t, (first + i * stride) % plan_.cp, (first + i * stride) / plan_.cp, stage));
        }
    return groups;
  }

  const Plan& plan_;
  const Fabric& fabric_;
  const std::vector<int>& nodes_;
};

}  // namespace tw
