// Cells of the tables that the program writes.
#pragma once

#include <string>

namespace tw {

// A text as one cell, in quotes only where a comma, a quote or a line break asks for them (RFC 4180).
std::string csv_field(std::string text);

// The same on one line: line breaks become blanks.
std::string csv_line_field(std::string text);

}  // namespace tw
