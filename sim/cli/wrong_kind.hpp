// Files of another kind than the one that is due.
#pragma once

#include <vector>

#include "core/error.hpp"

namespace tw::cli {

// The same faults, but of a file whose keys are all those of another kind of input that one thing, in place of each
// key.
std::vector<Fault> told_by_kind(const std::vector<Fault>& faults);

}  // namespace tw::cli
