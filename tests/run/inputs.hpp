// Inputs read for tests.
#pragma once

#include <string>

#include "core/document.hpp"
#include "core/error.hpp"
#include "paths.hpp"

namespace tw {

template <class T>
T input(const std::string& file) {
  Faults faults;
  const Document document = Document::load(source_folder() + "/" + file, description<T>().info(), {}, faults);
  T value = read<T>(document, faults);
  faults.throw_if_any();
  return value;
}

}  // namespace tw
