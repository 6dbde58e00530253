// The part of the text table that tells how the run went: time and its spread, evaluations, checkpoints, failures.
#pragma once

#include <string>
#include <vector>

#include "study/result.hpp"

namespace tw::report {

std::string run_lines(const Result& result);

// A line of the table, unless there is nothing to say; texts in a row.
void line(std::string& out, const std::string& name, const std::string& value);
// Breaks at blanks so that every line keeps to 80 columns; not at those of `tied`.
std::string wrapped(const std::string& text, const std::string& first_indent, const std::string& indent);
std::string tied(std::string text);
std::string joined(const std::vector<std::string>& parts);

// "12 s", "1.53 h", "20.4 days": the unit that suits.
std::string span_text(double value_s);

}  // namespace tw::report
