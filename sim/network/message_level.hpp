// Level 3: a collective as its single messages, each a transfer of its own that waits for what it needs. Slow, and only
// there to check the levels that treat a collective as one load.
#pragma once

#include <vector>

#include "network/class_part.hpp"
#include "network/collective.hpp"

namespace tw::network {

struct Message {
  int load_class = 0;
  double bytes = 0;
  int waits_for = 0;      // messages that must have arrived
  std::vector<int> then;  // messages that wait for this one
  double earliest_s = 0;  // its ends are there, after the first rank
};

struct MessageProgram {
  std::vector<LoadClass> classes;  // link ids of the fabric
  std::vector<Message> messages;
  double begin_s = 0;  // before the first message
};

// The flows and rounds of options.algorithm ("auto": ring, or direct where there is none) with one protocol:
// options.protocol, or Simple. What passes several stages, or is passed on, is cut into `chunks` pieces; rounds are
// played one by one, of more than `chunks` several as one with the latency of all. Throws InputError when the
// algorithm does not exist for the operation.
MessageProgram message_program(const Fabric& fabric, Operation operation, const std::vector<Rank>& ranks, double bytes,
                               const CollectiveOptions& options = {}, int chunks = 64);
// Of groups of one size that do it at the same time: adaptive routing splits what all of them send.
std::vector<MessageProgram> message_programs(const Fabric& fabric, Operation operation,
                                             const std::vector<std::vector<Rank>>& groups, double bytes,
                                             const CollectiveOptions& options = {}, int chunks = 64);

// That rounds are played together, where `chunks` are fewer than one group of the part has; empty where none are.
std::string joined_rounds(const Fabric& fabric, const ClassPart& part, int chunks = 64);

// Time of the last arrival. Throws SimulationError naming messages that never could start (a dead-lock) or finish.
double run_program(Engine& engine, const MessageProgram& program);

// Both with the engine on SimGrid: one call a process (see in_child()).
double message_level_s(const Fabric& fabric, Operation operation, const std::vector<Rank>& ranks, double bytes,
                       const CollectiveOptions& options = {}, int chunks = 64);

// Level 2: the collective as one load on the engine on SimGrid; one call a process.
double load_level_s(const Fabric& fabric, const CollectiveCost& cost);

}  // namespace tw::network
