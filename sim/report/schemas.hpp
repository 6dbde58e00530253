// JSON Schemas of all described inputs: what stands in schemas/.
#pragma once

#include <map>
#include <string>

#include "core/describe.hpp"

namespace tw::report {

// Every described kind that a scenario, a suite or a study can hold, by name.
std::map<std::string, const ObjectInfo*> input_kinds();

// Kind -> schema text, for every described kind that a scenario or a suite can hold.
std::map<std::string, std::string> schemas();

std::string schema_file_name(const std::string& kind);  // "host_noise" -> "host-noise.json"

}  // namespace tw::report
