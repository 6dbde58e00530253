#pragma once

namespace tw {

// "0.2.0".
const char* version();

}  // namespace tw
