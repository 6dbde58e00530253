// The collectives that a load class stands for: what level 3 sends message by message.
#pragma once

#include <string>
#include <vector>

#include "network/algorithm.hpp"

namespace tw::network {

// All groups at once, `times` one after another; each time every rank's buffer is `share` of the class's bytes.
struct ClassPart {
  Operation operation = Operation::all_reduce;
  std::vector<std::vector<Rank>> groups;
  std::string algorithm;
  Protocol protocol = Protocol::simple;
  double share = 1;
  int times = 1;
};

// One after the other; empty where a class is a load and nothing else (inside an NVLink domain, other users).
using ClassParts = std::vector<ClassPart>;

}  // namespace tw::network
