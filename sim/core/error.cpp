#include "core/error.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace tw {

std::string Fault::text() const {
  std::string line = file;
  if (!place.empty()) line += (line.empty() ? "" : ": ") + place;
  line += (line.empty() ? "" : ": ") + what;
  if (!allowed.empty()) line += "; " + allowed;
  return printable(line, 2000);  // one line a fault, whatever stands in the input
}

namespace {
std::string join(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& fault : faults) text += (text.empty() ? "" : "\n") + fault.text();
  return text;
}
}  // namespace

InputError::InputError(std::vector<Fault> faults) : std::runtime_error(join(faults)), faults_(std::move(faults)) {}

void Faults::add(Fault fault) {
  // Several scenarios may share a file: its fault is said once.
  const std::string text = fault.text();
  const bool known = std::any_of(list_.begin(), list_.end(), [&](const Fault& f) { return f.text() == text; });
  if (!known) list_.push_back(std::move(fault));
}

void Faults::throw_if_any() const {
  if (!list_.empty()) throw InputError(list_);
}

}  // namespace tw
