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

// Nobody reads more; the rest is counted. A fault beyond them is kept as an empty one.
constexpr size_t kMostFaults = 200;

bool is_empty(const Fault& f) {
  return f.file.empty() && f.place.empty() && f.what.empty();
}

bool same(const Fault& a, const Fault& b) {
  return a.what == b.what && a.place == b.place && a.file == b.file && a.allowed == b.allowed;
}

std::string join(const std::vector<Fault>& faults) {
  std::string text;
  size_t more = 0;
  for (const Fault& fault : faults) {
    if (is_empty(fault))
      ++more;
    else
      text += (text.empty() ? "" : "\n") + fault.text();
  }
  return more == 0 ? text : text + "\nand " + std::to_string(more) + " more faults like these";
}

}  // namespace

InputError::InputError(std::vector<Fault> faults) : std::runtime_error(join(faults)), faults_(std::move(faults)) {}

void Faults::add(Fault fault) {
  // Several scenarios may share a file: its fault is said once.
  const auto end = list_.begin() + static_cast<std::ptrdiff_t>(std::min(list_.size(), kMostFaults));
  if (std::any_of(list_.begin(), end, [&](const Fault& f) { return same(f, fault); })) return;
  list_.push_back(list_.size() < kMostFaults ? std::move(fault) : Fault{});
}

void Faults::throw_if_any() const {
  if (!list_.empty()) throw InputError(list_);
}

}  // namespace tw
