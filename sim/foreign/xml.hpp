// XML as NCCL writes it: elements with attributes, comments, declarations; no entities but the five of the standard.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foreign/foreign.hpp"

namespace tw::foreign {

struct XmlElement {
  std::string name;
  size_t line = 0;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;
  // "" where there is none.
  std::string attribute(const std::string& key) const;
};

// The outermost element. Nothing when a fault with its line was added: tags that do not close, attributes without
// quotes, nesting beyond 64.
std::optional<XmlElement> parse_xml(const Source& source, Faults& faults);

}  // namespace tw::foreign
