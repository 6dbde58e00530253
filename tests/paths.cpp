#include "paths.hpp"

const std::string& source_folder() {
  static const std::string folder = TW_SOURCE;
  return folder;
}
const std::string& program_folder() {
  static const std::string folder = TW_BINARY;
  return folder;
}
