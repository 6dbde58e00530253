// One way to run a collective, before its size: what it loads and how many messages follow one another.
#pragma once

#include <string>
#include <vector>

#include "network/collective.hpp"

namespace tw::network {

struct Collectives::Built {
  const CollectiveAlgorithm* algorithm = nullptr;
  std::string tuning;
  std::vector<LinkUse> uses;  // before the efficiency of the protocol
  double slowest = 0;         // seconds of the narrowest link for each byte
  double assumed = 0;         // the same as the library takes it
  int narrow = -1;
  double nvlink = 0, network = 0;  // messages that follow one another
  double hops = 0;                 // cables of a message between domains: mean, of single messages the longest way
  double reduced = 0;              // ranks of a domain whose switches reduce
  int domains = 1;
  double domain_ranks = 1;              // of the largest
  double adapters = 1, domain_Bps = 0;  // that a domain sends through
  double bus_factor = 1;                // bytes that the library takes a bus to carry for each of the buffer
  // Of a chain or tree that passes pieces on: channels, ways (up and down), hops of each by kind, and seconds for a
  // byte at all of them.
  double channels = 1, relays = 0, hops_nvlink = 0, hops_network = 0;
  double passed_network = 0, passed_nvlink = 0;
  std::string remark;
};

}  // namespace tw::network
