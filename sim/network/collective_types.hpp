// Names of collectives and protocols, as inputs and results spell them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/describe.hpp"

namespace tw::network {

enum class Operation { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, send_recv };
enum class Protocol { automatic, ll, ll128, simple };

}  // namespace tw::network

namespace tw {
template <>
struct Choices<network::Operation> {
  using O = network::Operation;
  static std::vector<std::pair<std::string, O>> table();
};
template <>
struct Choices<network::Protocol> {
  using P = network::Protocol;
  static std::vector<std::pair<std::string, P>> table();
};
}  // namespace tw
