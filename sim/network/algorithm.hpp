// Collective algorithms: what each sends, in stages of flows between ranks and switches. An algorithm is one file
// (algorithm_*.cpp) and one line in algorithms(). Loads on links, latencies and the messages of level 3 all follow from
// its flows.
#pragma once

#include <climits>
#include <string>
#include <string_view>
#include <vector>

#include "network/collective_types.hpp"
#include "topology/fabric.hpp"

namespace tw::network {

struct Rank {
  int node = 0;
  int gpu = 0;  // within the node
  bool operator==(const Rank&) const = default;
};

// The ranks of one collective, where they stand and what they can send through.
class Group {
 public:
  Group(const Fabric& fabric, const std::vector<Rank>& ranks);
  Group(const Fabric&, std::vector<Rank>&&) = delete;  // both must outlive the group

  const Fabric& fabric;
  const std::vector<Rank>& ranks;
  std::vector<std::vector<int>> domains;  // ranks by NVLink domain, in order of first appearance
  std::vector<std::vector<int>> gates;    // per domain: ranks beside different adapters, one for each

  int n() const { return static_cast<int>(ranks.size()); }
  int count() const { return static_cast<int>(domains.size()); }
  int domain_of(int rank) const { return domain_of_[static_cast<size_t>(rank)]; }  // index into domains
  // Adapters of a rank's node that serve it: those beside it, or, where they have failed, another that lives.
  struct Adapters {
    const int* first;
    const int* last;
    const int* begin() const { return first; }
    const int* end() const { return last; }
    size_t size() const { return static_cast<size_t>(last - first); }
    bool empty() const { return first == last; }
    int operator[](size_t i) const { return first[i % size()]; }
  };
  Adapters adapters(int rank) const;
  int channels() const;  // rings or trees side by side: one for each adapter of a domain
  int gate(int domain, int channel) const;
  std::vector<int> chain(int domain, int first) const;  // members of a domain, beginning with `first`
  int even_size() const;                                // members of every domain, when all have as many; else 0
  size_t largest() const;                               // members of the largest domain
  double domain_Bps() const;  // that the first domain gets out: its adapters, or what PCIe feeds them

 private:
  std::vector<int> domain_of_, adapter_, adapter_begin_;
};

// End points that are no ranks: the NVLink switches of domain d of the group are -1 - d.
constexpr int nvlink_switch(int domain) {
  return -1 - domain;
}
// The tree of network switches that adds up what comes in and hands it back.
constexpr int kReduction = INT_MIN;

// `share` of the full buffer goes from one end to the other over the whole operation: over NVLink inside a domain, else
// through the adapters of the two ranks, or of `via` (a rank of the sender's domain, reached over NVLink) in place of
// the sender's. Flows of one `channel` depend on each other; into kReduction they are one stream, summed where they
// meet.
struct Flow {
  int from = 0, to = 0;
  double share = 1;
  int channel = 0;
  int via = -1;
};

// Every member sends `share` of the buffer to every other.
struct Clique {
  std::vector<int> members;
  double share = 1;
};

// Flows that run at the same time. Each is sent in as many messages as there are rounds; `relays`: each message in
// pieces that are passed on as they come, else a round begins when the one before has arrived.
struct Stage {
  std::vector<Flow> flows;
  std::vector<Clique> cliques;
  double nvlink = 0, network = 0;  // messages that follow one another, inside domains and between them
  bool relays = false;
};

struct FlowPlan {
  std::vector<Stage> stages;     // pipelined, piece by piece
  const char* tuning = "ring";   // row of the library's table
  bool single_messages = false;  // the farthest pair ends it; else the mean way counts
};

struct CollectiveOptions;

struct CollectiveAlgorithm {
  std::string_view name;  // a literal: with nothing to destroy, the copies in the program and its engine are no fault
  // Why it cannot run; empty when it can.
  std::string (*refusal)(const Group& group, Operation operation);
  FlowPlan (*plan)(const Group& group, Operation operation);
  // Does a library take it into account when nobody names an algorithm?
  bool (*offered)(const Group& group, Operation operation, const CollectiveOptions& options);
  bool uses_switches = false;  // what was measured between ranks does not stand for it
};

// All algorithms; of equal ones the earlier is taken.
const std::vector<CollectiveAlgorithm>& algorithms();
std::vector<std::string> algorithm_names(const std::vector<CollectiveAlgorithm>& known);  // "auto" first

bool reduces_or_gathers(Operation operation);  // all-reduce, reduce-scatter, all-gather
// An all-to-all in which what goes to another rail changes it inside the sender's domain first.
FlowPlan along_rails(const Group& group);
constexpr const char* kUneven = "the ranks are not spread evenly over the nodes";

// Parent of each of `count` members in the first or second of the two trees of Sanders, Speck and Traeff (2009): a
// member that passes on in one is a leaf of the other. -1 for the root.
std::vector<int> tree_parents(int count, bool second);
int depth_of(const std::vector<int>& parents);

}  // namespace tw::network
