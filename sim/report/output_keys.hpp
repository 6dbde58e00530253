// Every key of the result JSON with its unit and meaning: labels of figures and of the HTML report, and the reference
// page of outputs. A test holds the list against results.
#pragma once

#include <string>
#include <vector>

#include "core/outputs.hpp"

namespace tw::report {

// In the order of the result; described where they are computed.
const std::vector<OutputKey>& output_keys();

// The entry that stands for a path, whose list indices may be numbers; null when there is none.
const OutputKey* find_output_key(const std::string& path);

// "energy.total_dc_j" -> the meaning that the key is described with; else its last part with blanks.
std::string key_words(const std::string& path);

// The unit of a path, empty when there is none; amounts of money are in the currency that their name ends with.
std::string unit_of(const std::string& path);

// Whether more of it is better (rates, utilisation); of times, energies and costs less is.
bool more_is_better(const std::string& path);

// The reference page: a table for each part of the result.
std::string outputs_markdown();

}  // namespace tw::report
