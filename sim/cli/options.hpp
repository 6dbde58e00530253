// What a subcommand takes from the command line, declared without the parser: one file (parse.cpp) knows CLI11.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/describe.hpp"

namespace tw::cli {

// Takes in a word; says what is wrong with it, or nothing.
using Reader = std::function<std::string(const std::string& word)>;

// Where a parsed value goes. Numbers are checked against the range of their option: CLI11 alone would read -3 as
// 18446744073709551613 and take nan and inf. An option with a reader may be repeated.
using Target = std::variant<bool*, std::string*, std::vector<std::string>*, uint64_t*, int*, double*, Reader>;

// What an option names to be written: told before anything is simulated where it cannot be.
enum class Output { none, file, folder };

struct Option {
  std::string names;  // "-o,--output"; a name without dashes is a positional argument
  std::string value;  // "FILE", shown in the help
  std::string meaning;
  Target target;
  bool required = false;
  Range range;  // of numbers; of several texts: how many belong to one option (low >= 2)
  Output output = Output::none;
};

// Options by kind. Those that several commands have read the same everywhere.
Option argument(std::string name, std::string value, std::string meaning, Target target);
Option option(std::string names, std::string value, std::string meaning, Target target, Range range = {});
Option required(Option option);
Option flag(std::string names, std::string meaning, bool* target);
Option output_file(std::string names, std::string meaning, std::string* target);
Option output_folder(std::string names, std::string meaning, std::string* target);
Option json_file(std::string what, std::string* target);             // --json
Option overrides(std::string of, std::vector<std::string>* target);  // --set
Option jobs(std::string what, int* target);                          // --jobs
Option seed(uint64_t* target);                                       // --seed
Option quiet(bool* target, std::string meaning = "no progress bar and no remarks");

// A quantity above 0, "1.2 MW", in SI.
Reader quantity_reader(std::optional<double>& out, const DimensionInfo& dimension);
template <class Q>
Reader quantity(std::optional<double>& out) {
  return quantity_reader(out, DimensionOf<Q>::info);
}
// Whole numbers, "8,16" or "8..64": the first, doubled as long as it stays within the last, and the last.
Reader counts(std::vector<int>& out, int least = 1);
// Shares from 0 to 1, "0,0.5,1".
Reader shares(std::vector<double>& out);
// The place of a name in `names`, or what is wrong with it.
std::string choice_problem(const std::string& word, const std::vector<std::string>& names);
template <class E>
Reader choice(E& out) {
  return [&out](const std::string& word) {
    std::vector<std::string> names;
    for (const auto& [name, value] : Choices<E>::table()) {
      if (name == word) return out = value, std::string();
      names.push_back(name);
    }
    return choice_problem(word, names);
  };
}
// Several, "time,carbon", each once.
std::vector<std::string> words_of(const std::string& list);
template <class E>
Reader choices(std::vector<E>& out) {
  return [&out](const std::string& list) {
    for (const std::string& word : words_of(list)) {
      E value{};
      if (std::string problem = choice<E>(value)(word); !problem.empty()) return problem;
      bool known = false;
      for (const E one : out) known = known || one == value;
      if (!known) out.push_back(value);
    }
    return std::string();
  };
}

}  // namespace tw::cli
