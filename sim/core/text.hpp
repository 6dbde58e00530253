// Small text helpers shared by errors and reports.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw {

// "did you mean "x"?" for the nearest of `known`, else "known: a, b, c" (at most `most` of them).
std::string suggest(std::string_view given, const std::vector<std::string>& known, size_t most = 16);

// "1, 2 or 4"
std::string one_of(const std::vector<std::string>& choices);

// "a bandwidth", "an energy"
std::string with_article(std::string_view noun);

// Control characters as \n, \t or \x1b, so that text from an input keeps to its line; at most `most` bytes.
std::string printable(std::string_view text, size_t most = 200);

std::vector<std::string> split(std::string_view text, char separator);

}  // namespace tw
