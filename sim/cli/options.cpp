#include "cli/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/text.hpp"

namespace tw::cli {

Option argument(std::string name, std::string value, std::string meaning, Target target) {
  return required(option(std::move(name), std::move(value), std::move(meaning), std::move(target)));
}

Option option(std::string names, std::string value, std::string meaning, Target target, Range range) {
  return {std::move(names), std::move(value), std::move(meaning), std::move(target), false, range, Output::none};
}

Option required(Option option) {
  option.required = true;
  return option;
}

Option flag(std::string names, std::string meaning, bool* target) {
  return option(std::move(names), "", std::move(meaning), target);
}

Option output_file(std::string names, std::string meaning, std::string* target) {
  Option o = option(std::move(names), "FILE", std::move(meaning), target);
  o.output = Output::file;
  return o;
}

Option output_folder(std::string names, std::string meaning, std::string* target) {
  Option o = option(std::move(names), "DIR", std::move(meaning), target);
  o.output = Output::folder;
  return o;
}

Option json_file(std::string what, std::string* target) {
  return output_file("--json", "write " + what + " as JSON; - is stdout, in place of the table", target);
}

Option overrides(std::string of, std::vector<std::string>* target) {
  return option("--set", "POINTER=VALUE", "override a value of " + of + "; may be repeated", target);
}

Option jobs(std::string what, int* target) {
  return option("--jobs", "N", what + " at once (default: one a processor)", target, between(1, 4096));
}

Option seed(uint64_t* target) {
  return option("--seed", "N", "seed of all random draws (default 1)", target);
}

Option quiet(bool* target, std::string meaning) {
  return flag("-q,--quiet", std::move(meaning), target);
}

Reader quantity_reader(std::optional<double>& out, const DimensionInfo& dimension) {
  return [&out, &dimension](const std::string& word) {
    const ParsedQuantity q = parse_quantity(word, dimension);
    if (!q.problem.empty()) return q.problem;
    if (!(q.value > 0)) return fmt::format("\"{}\" is out of range; allowed: above 0 {}", word, dimension.si);
    out = q.value;
    return std::string();
  };
}

namespace {

std::optional<int> whole(const std::string& text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc() && end == text.data() + text.size() && value >= least && value <= 1000000;
  return good ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<std::string> words_of(const std::string& list) {
  return split(list, ',');
}

Reader counts(std::vector<int>& out, int least) {
  return [&out, least](const std::string& list) {
    for (const std::string& word : words_of(list)) {
      const auto dots = word.find("..");
      const auto from = whole(word.substr(0, dots), least);
      const auto to = dots == std::string::npos ? from : whole(word.substr(dots + 2), least);
      if (!from || !to || *to < *from)
        return fmt::format("\"{}\" is neither a number nor a range; such as 8, \"8,16\" or \"8..64\", doubling",
                           printable(word, 40));
      for (int v = *from; v < *to; v = std::max(1, 2 * v)) out.push_back(v);
      out.push_back(*to);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return std::string();
  };
}

Reader shares(std::vector<double>& out) {
  return [&out](const std::string& list) {
    for (const std::string& word : words_of(list)) {
      double value = -1;
      const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (problem != std::errc() || end != word.data() + word.size() || !(value >= 0 && value <= 1))
        return fmt::format("\"{}\" is no share; from 0 to 1, such as \"0,0.5,1\"", printable(word, 40));
      out.push_back(value);
    }
    return std::string();
  };
}

std::string choice_problem(const std::string& word, const std::vector<std::string>& names) {
  const std::string nearest = suggest(word, names);
  return fmt::format("unknown choice \"{}\"; {}", printable(word, 40),
                     nearest.rfind("known: ", 0) == 0 ? "allowed: " + one_of(names) : nearest);
}

}  // namespace tw::cli
