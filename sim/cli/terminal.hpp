// Text for terminals: wrapped at words, coloured where somebody looks.
#pragma once

#include <string>

namespace tw::cli {

constexpr size_t kTerminalWidth = 80;

// Breaks lines longer than `width` at blanks; what follows begins at `indent`. Line ends of the text stay. Lines that
// begin with two blanks are commands, which go on after a backslash.
std::string wrapped(const std::string& text, size_t width = kTerminalWidth, size_t indent = 0);

// Headings bold, warnings yellow, what was not met red: for a terminal, unless NO_COLOR is set (no-color.org) or TERM
// is "dumb".
std::string coloured(const std::string& text);
bool wants_colour(int descriptor);

}  // namespace tw::cli
