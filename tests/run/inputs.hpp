// Inputs read for tests.
#pragma once

#include <string>

#include "core/document.hpp"
#include "core/error.hpp"

namespace tw {

template <class T>
T input(const std::string& file) {
  Faults faults;
  const Document document = Document::load(TW_SOURCE "/" + file, description<T>().info(), {}, faults);
  T value = read<T>(document, faults);
  faults.throw_if_any();
  return value;
}

}  // namespace tw
