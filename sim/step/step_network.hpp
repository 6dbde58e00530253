// The links that one step loads: exchanges inside layers in closed form, hand-overs between pipeline stages and the
// gradient exchange as load classes of the fabric engine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "network/class_part.hpp"
#include "network/engine.hpp"
#include "step/cost.hpp"
#include "step/inputs.hpp"
#include "topology/fabric.hpp"

namespace tw {

namespace network {
class Collectives;
}

// Buckets that the gradients of one chunk travel in: enough to overlap, few enough to stay cheap.
inline constexpr int gradient_buckets = 8;

struct StepNetwork {
  std::vector<network::Link> links;
  std::vector<network::LoadClass> classes;
  std::vector<int> link_ids;               // of the fabric, for each link
  std::vector<network::ClassParts> parts;  // [class]: what level 3 sends, message by message; else empty
  std::vector<int> others;                 // classes of other users of the fabric, in the order they were given
  // Class of the hand-over from stage s to its neighbour, per replica; -1 where there is none.
  std::vector<std::vector<int>> forward_hand_over, backward_hand_over;  // [stage][replica]
  std::vector<int> gradient_exchange;                                   // [stage]; -1 when dp x cp = 1
  // [stage]: hybrid groups inside an NVLink domain, where an exchange takes its own time before its pieces travel.
  std::vector<bool> inside_first;
  std::vector<int> weight_gather;                   // [stage]; sharded optimizers only
  std::vector<int> expert_exchange, expert_gather;  // the same of the experts' gradients
  // An exchange inside visits that may meet others on links of the fabric: its class, and how many workers start it
  // together: the last one that comes starts it for all.
  struct InVisits {
    std::vector<int> classes;  // [stage * replicas + replica]
    int together = 1;
  };
  std::map<Exchange, InVisits> in_visits;
  // Seconds a byte that the costs of visits have for each: all groups of the first stage at once, nobody else there.
  SharedExchanges shared;
  // Of cables that always carry in the same proportion `links` holds the narrowest: fills in the loads of the others,
  // by link of the fabric. Empty where it holds all.
  std::function<void(std::vector<double>&)> other_links;
  double sample_exchange_s = 0;  // all-to-all of a profiled workload's samples
  ExchangeTime exchange;
};

// Rank grid: TP innermost, then CP, DP, PP, on nodes in the order of `nodes`.
// `replicas` is 1 (a representative) or dp (every replica has links of its own). `others`: loads of other users of the
// fabric, on its link ids. `messages`: keep what level 3 needs.
StepNetwork build_step_network(const StepInputs& in, const Fabric& fabric, const std::vector<int>& nodes, int replicas,
                               std::vector<network::LoadClass> others = {}, bool messages = false);

// Level 3: sends what the classes stand for as messages; on SimGrid, one call a process. Throws DoesNotFit where they
// are too many.
std::unique_ptr<network::Engine> message_engine(const StepNetwork& net, const StepInputs& in, const Fabric& fabric);

// The same in two parts, for a search that looks at many plans of one job: routes and levels of the fabric are found
// once. `alone`: nobody else loads the fabric.
std::shared_ptr<network::Collectives> step_collectives(const StepInputs& in, const Fabric& fabric, bool alone);
StepNetwork build_step_network(const StepInputs& in, const std::shared_ptr<network::Collectives>& collectives,
                               const std::vector<int>& nodes, int replicas, std::vector<network::LoadClass> others = {},
                               bool messages = false);

}  // namespace tw
