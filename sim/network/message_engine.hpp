// Level 3 of a step: an engine that sends what its load classes stand for message by message. Slow: an oracle of the
// levels that treat a collective as one load.
#pragma once

#include <memory>
#include <vector>

#include "network/class_part.hpp"
#include "network/collective.hpp"

namespace tw::network {

// Messages of all classes together, at most: some ten seconds and a GiB.
constexpr size_t kMostMessages = 4000000;

// Opens the engine on the links of `fabric`, which `classes` name. A class with parts is sent as their messages, each
// after those that it needs; one without takes the time of its load. They share as on fluid_engine(). `chunks`: as of
// message_program(). Throws DoesNotFit beyond kMostMessages.
//
// With `replay` a part of the same size that comes again to links where nobody else is takes the time that it took when
// it was first alone on them; when somebody comes meanwhile its messages go on from where they were then.
std::unique_ptr<Engine> message_engine(const Fabric& fabric, const CollectiveOptions& options,
                                       const std::vector<LoadClass>& classes, const std::vector<ClassParts>& parts,
                                       int chunks = 64, bool replay = true);

}  // namespace tw::network
