// Names of collectives and algorithms, as inputs and results spell them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"

namespace tw::network {

enum class Operation { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, send_recv };
enum class Algorithm { automatic, ring, tree, hierarchical, nvls, sharp, direct };
enum class Protocol { automatic, ll, ll128, simple };

}  // namespace tw::network

namespace tw {
template <>
struct Choices<network::Operation> {
  using O = network::Operation;
  static std::vector<std::pair<std::string, O>> table() {
    return {{"all-reduce", O::all_reduce}, {"reduce-scatter", O::reduce_scatter}, {"all-gather", O::all_gather},
            {"broadcast", O::broadcast},   {"all-to-all", O::all_to_all},         {"send-recv", O::send_recv}};
  }
};
template <>
struct Choices<network::Algorithm> {
  using A = network::Algorithm;
  static std::vector<std::pair<std::string, A>> table() {
    return {{"auto", A::automatic}, {"ring", A::ring},   {"tree", A::tree},    {"hierarchical", A::hierarchical},
            {"nvls", A::nvls},      {"sharp", A::sharp}, {"direct", A::direct}};
  }
};
template <>
struct Choices<network::Protocol> {
  using P = network::Protocol;
  static std::vector<std::pair<std::string, P>> table() {
    return {{"auto", P::automatic}, {"ll", P::ll}, {"ll128", P::ll128}, {"simple", P::simple}};
  }
};
}  // namespace tw
