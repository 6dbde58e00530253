#include "network/collective_types.hpp"

#include "core/codec.hpp"

namespace tw {

std::vector<std::pair<std::string, network::Operation>> Choices<network::Operation>::table() {
  return {{"all-reduce", network::Operation::all_reduce}, {"reduce-scatter", network::Operation::reduce_scatter},
          {"all-gather", network::Operation::all_gather}, {"broadcast", network::Operation::broadcast},
          {"all-to-all", network::Operation::all_to_all}, {"send-recv", network::Operation::send_recv}};
}

std::vector<std::pair<std::string, network::Protocol>> Choices<network::Protocol>::table() {
  return {{"auto", network::Protocol::automatic},
          {"ll", network::Protocol::ll},
          {"ll128", network::Protocol::ll128},
          {"simple", network::Protocol::simple}};
}

}  // namespace tw
