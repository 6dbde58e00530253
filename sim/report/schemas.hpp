// JSON Schemas of all described inputs: what stands in schemas/.
#pragma once

#include <map>
#include <string>

namespace tw::report {

// Kind -> schema text, for every described kind that a scenario or a suite can hold.
std::map<std::string, std::string> schemas();

std::string schema_file_name(const std::string& kind);  // "host_noise" -> "host-noise.json"

}  // namespace tw::report
