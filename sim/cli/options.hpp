// What a subcommand takes from the command line, declared without the parser: one file (parse.cpp) knows CLI11.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/describe.hpp"

namespace tw::cli {

// Where a parsed value goes. Numbers are checked against the range of their option: CLI11 alone would read -3 as
// 18446744073709551613 and take nan and inf.
using Target = std::variant<bool*, std::string*, std::vector<std::string>*, uint64_t*, int*, double*>;

struct Option {
  std::string names;  // "-o,--output"; a name without dashes is a positional argument
  std::string value;  // "FILE", shown in the help
  std::string meaning;
  Target target;
  bool required = false;
  Range range;  // of numbers; of several texts: how many belong to one option (low >= 2)
};

}  // namespace tw::cli
