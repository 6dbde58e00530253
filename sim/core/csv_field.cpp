#include "core/csv_field.hpp"

namespace tw {

std::string csv_field(std::string text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  for (size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
  return "\"" + text + "\"";
}

std::string csv_line_field(std::string text) {
  std::string field = csv_field(std::move(text));
  for (char& c : field)
    if (c == '\n' || c == '\r') c = ' ';
  return field;
}

}  // namespace tw
