// A library of collectives (NCCL, RCCL, oneCCL) as its tuning tables describe it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/units.hpp"

namespace tw {

// A buffer of fewer pieces than per_hop for every hop of a tree, and per_node_hop for every hop between nodes and one
// more, shared by the ranks of a node: its slots are halved, down to `least`.
struct ChunkRule {
  double per_hop = 0, per_node_hop = 0;
  Bytes least;
  static void describe(Description<ChunkRule>& d);
};

// Latencies of one algorithm with one protocol: once, and of every message inside a domain and between nodes (there
// beside the fabric's own latency). `efficiency`: payload over what is sent.
struct ProtocolTuning {
  Time base, nvlink, network;
  Time per_rank;  // of each rank of a domain whose part the switches reduce
  // What a channel passes on at a time, once it is there as a whole; 0: line by line.
  Bytes network_slot, nvlink_slot;
  Time network_held, nvlink_held;  // of such a wait, what `network` and `nvlink` hold already
  std::vector<ChunkRule> chunks;   // one after the other
  double efficiency = 1;
  // What the library takes off when it chooses: see describe().
  std::vector<Bandwidth> assumed_most, assumed_most_channel;
  std::vector<double> assumed_shares;
  double assumed_latency = 1;
  static void describe(Description<ProtocolTuning>& d);
};

struct AlgorithmTuning {
  std::optional<ProtocolTuning> ll, ll128, simple;
  double assumed_load = 0;  // 0: the library's model of it is right
  int parallel = 0;         // 0: messages follow one another
  static void describe(Description<AlgorithmTuning>& d);
};

// What a library runs where it goes by a table of sizes and not by a model of its own.
struct LibraryChoice {
  std::string operation;
  Bytes up_to;            // full buffer of a rank; 0: of any size
  std::string algorithm;  // where it can run
  static void describe(Description<LibraryChoice>& d);
};

struct CollectiveLibrary {
  std::string name;
  std::string family = "NCCL";  // accelerators of one maker run it
  std::map<std::string, AlgorithmTuning> algorithms;
  std::vector<LibraryChoice> choices;  // the first that fits and can run
  double nvls_efficiency = 1;
  int queue_pairs = 1;
  int channels_per_adapter = 1;  // each with slots of its own
  std::string source;
  static void describe(Description<CollectiveLibrary>& d);
};

// models/collectives/nccl-2.27.json, read once.
const CollectiveLibrary& default_library();

}  // namespace tw
