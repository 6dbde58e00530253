// Towers: stacks of their own whose last states stand among the tokens of the network, such as encoders of images.
// They run on the first chunk, before its layers, once for each sample: without sequence parallelism, and whole on
// every rank of a context-parallel group (Megatron-LM, examples/multimodal/model.py).
#pragma once

#include <vector>

#include "workload/layer_builder.hpp"
#include "workload/tape.hpp"

namespace tw {

// The layers of a tower as a network without embedding and head.
Architecture tower_network(const Tower& tower);

// Whether the layers of a tower, and its projector, are trained.
bool trains_tower(const Tower& tower, const Training& training);
bool trains_projector(const Training& training);

// Widths that the projector goes through, from what is merged to the network's hidden size.
std::vector<double> projector_widths(const Tower& tower, const Architecture& network);

// What one rank does for the towers of one micro-batch, in the order of a forward pass: layers alike in a row stand
// there once.
struct TowerStretch {
  LayerOperations operations;
  int times = 1;
};
std::vector<TowerStretch> tower_stretches(const Architecture& network, const Training& training, const Plan& plan,
                                          const Software& software);
// All of it.
LayerOperations tower_operations(const Architecture& network, const Training& training, const Plan& plan,
                                 const Software& software);

// Pieces of a tower in the order of a forward pass: what its layers begin with, layers alike in a row, what projectors
// take, these.
struct TowerPiece {
  Tape tape;
  double flops = 0;  // of one of them, a token of the network's sequence, forward
  int tower = 0;     // whose parameters (ParameterGroup::tower) it has a share of, and each of them which
  double share = 0;
  bool trained = true;
  int times = 1;
};
// Of the network's k-th tower, from 0.
std::vector<TowerPiece> tower_pieces(const Architecture& network, size_t k, const Training& training, const Plan& plan,
                                     const Software& software);

// Multiply-adds of a sample forward: with weights of the tower, without weights, and with those of its projector.
struct TowerFlops {
  double linear = 0, scores = 0, projector = 0;
};
TowerFlops tower_flops(const Architecture& network, const Tower& tower);

}  // namespace tw
