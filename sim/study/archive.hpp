// Results as bytes and back: they cross a pipe from the child that simulated them. Same program on both ends, so no
// versions and no portability; every field is listed once.
#pragma once

#include <string>

#include "study/result.hpp"

namespace tw {

std::string to_bytes(const Result& result);
Result from_bytes(const std::string& bytes);

}  // namespace tw
