#include "core/version.hpp"

namespace tw {

const char* version() {
  return TW_VERSION;
}

}  // namespace tw
