#include "hardware/collective_library.hpp"

#include "core/codec.hpp"
#include "core/document.hpp"

namespace tw {

void ChunkRule::describe(Description<ChunkRule>& d) {
  d.object("chunk_rule", "When a library halves the slots of a tree, so that a small buffer still fills it.");
  d.optional("per_hop", &ChunkRule::per_hop, "pieces for every hop from a leaf to the root", between(0, 1e6));
  d.optional("per_node_hop", &ChunkRule::per_node_hop,
             "pieces for every hop between nodes and one more, shared by the ranks of a node", between(0, 1e6));
  d.required("least", &ChunkRule::least, "slots no larger than this stay", above(0));
}

void ProtocolTuning::describe(Description<ProtocolTuning>& d) {
  d.object("protocol_tuning", "Latencies of one algorithm of a collective library with one protocol.");
  d.required("base", &ProtocolTuning::base, "once a call");
  d.optional("nvlink", &ProtocolTuning::nvlink, "of a message inside an NVLink domain");
  d.optional("network", &ProtocolTuning::network, "of a message between nodes, beside the fabric's own latency");
  d.optional("per_rank", &ProtocolTuning::per_rank,
             "once a call for each rank of a domain: its part of the buffer in turn");
  d.optional("network_slot", &ProtocolTuning::network_slot,
             "payload of a channel that goes from node to node as a whole; a chain that passes it on waits for it at "
             "every node; 0: it does not");
  d.optional("nvlink_slot", &ProtocolTuning::nvlink_slot, "the same from rank to rank inside an NVLink domain");
  d.optional("network_held", &ProtocolTuning::network_held,
             "part of the wait for a slot that the latency of a message between nodes holds already");
  d.optional("nvlink_held", &ProtocolTuning::nvlink_held, "the same inside an NVLink domain");
  d.optional("chunks", &ProtocolTuning::chunks, "when slots are halved, one rule after the other");
  d.optional("efficiency", &ProtocolTuning::efficiency, "payload over what is sent", Range{0, 1, true});
  d.optional("assumed_most", &ProtocolTuning::assumed_most,
             "bus bandwidth that the library takes it to reach at most when it chooses: on one node, on two, on more",
             above(0));
  d.optional("assumed_most_channel", &ProtocolTuning::assumed_most_channel,
             "the same of each channel; there is one for every adapter, or more for adapters of over 50 GB/s",
             above(0));
  d.optional("assumed_shares", &ProtocolTuning::assumed_shares,
             "shares of its bandwidth that the library takes an all-reduce to reach when it chooses: of 64 bytes, of "
             "128, and so on; beyond the last all",
             Range{0, 1, true});
  d.optional("assumed_latency", &ProtocolTuning::assumed_latency,
             "factor on the latency of an all-reduce between nodes when the library chooses", between(1, 100));
}

void AlgorithmTuning::describe(Description<AlgorithmTuning>& d) {
  d.object("algorithm_tuning", "One algorithm of a collective library, with the protocols that it has.");
  d.optional("ll", &AlgorithmTuning::ll, "low latency: a flag beside every 4 bytes");
  d.optional("ll128", &AlgorithmTuning::ll128, "low latency in lines of 128 bytes, 8 of which are flags");
  d.optional("simple", &AlgorithmTuning::simple, "large chunks, announced by a flag of their own");
  d.optional("assumed_load", &AlgorithmTuning::assumed_load,
             "buffers that the library takes a node's adapters to carry each way when it chooses among three nodes or "
             "more; 0: what they carry",
             between(0, 100));
  d.optional("parallel", &AlgorithmTuning::parallel, "messages of a rank on their way at a time; 0: one after another",
             between(0, 1024));
}

void LibraryChoice::describe(Description<LibraryChoice>& d) {
  d.object("library_choice", "What a collective library runs, by operation and size.");
  d.required("operation", &LibraryChoice::operation,
             "all-reduce, reduce-scatter, all-gather, broadcast, all-to-all or send-recv");
  d.optional("up_to", &LibraryChoice::up_to, "full buffer of a rank, at most; 0: of any size");
  d.required("algorithm", &LibraryChoice::algorithm, "the algorithm; where it cannot run, the next choice decides");
}

void CollectiveLibrary::describe(Description<CollectiveLibrary>& d) {
  d.object("collective_library", "Tuning tables of a library of collectives.");
  d.required("name", &CollectiveLibrary::name, "library and release");
  d.optional("family", &CollectiveLibrary::family,
             "NCCL, RCCL, oneCCL ...: the accelerators of one maker run the tables of one family");
  d.required("algorithms", &CollectiveLibrary::algorithms,
             "by name: ring, tree, nvls, nvls_tree, collnet, p2p; what is missing the library does not have");
  d.optional("choices", &CollectiveLibrary::choices,
             "what it runs by operation and size, where it goes by a table: the first that fits and can run; else the "
             "algorithm "
             "that it takes to be the fastest");
  d.optional("nvls_efficiency", &CollectiveLibrary::nvls_efficiency,
             "reached share of NVLink's line rate where its switches reduce and multicast", Range{0, 1, true});
  d.optional("queue_pairs", &CollectiveLibrary::queue_pairs,
             "flows that a connection between nodes is hashed as where switches hash (ECMP)", between(1, 64));
  d.optional("channels_per_adapter", &CollectiveLibrary::channels_per_adapter,
             "channels, with slots of their own, that share a node's adapter", between(1, 64));
  d.optional("source", &CollectiveLibrary::source, "where the numbers come from");
}

const CollectiveLibrary& default_library() {
  static const auto library = load<CollectiveLibrary>("models/collectives/nccl-2.27.json");
  return library;
}

}  // namespace tw
