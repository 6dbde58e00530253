// The reference page of inputs, from their declarations.
#pragma once

#include <string>

namespace tw::report {

// Markdown: a section a kind of input, what a user writes first on top, a table of its keys.
std::string inputs_markdown();
// Kinds of input, and the words that keys choose from.
std::string choices_markdown();

}  // namespace tw::report
