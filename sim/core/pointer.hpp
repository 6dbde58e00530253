// What a JSON pointer into an input names, by the declarations alone.
#pragma once

#include <string>

#include "core/describe.hpp"

namespace tw {

// The declared type of the value that `pointer` ("/plan/nodes") names in an object of kind `info`; null when no such
// key is declared. Whether a list has the element is for the document to say.
const TypeInfo* type_at(const ObjectInfo& info, const std::string& pointer);

// A token of a pointer as the key it stands for (~1 and ~0 undone).
std::string pointer_key(std::string token);

}  // namespace tw
