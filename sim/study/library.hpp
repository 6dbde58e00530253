// The library for programs of others (find_package(trainwatt)): scenarios in, results out. See examples/.
#pragma once

#include <cstdlib>

#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace tw {

// Lets a program that is installed nowhere find the package's data and engine. What the environment names
// (TRAINWATT_DATA, TRAINWATT_ENGINE) counts before. Call it first.
inline void use_installed_package() {
#ifdef TRAINWATT_PACKAGE_DATA
  setenv("TRAINWATT_DATA", TRAINWATT_PACKAGE_DATA, 0);
#endif
#ifdef TRAINWATT_PACKAGE_ENGINE
  setenv("TRAINWATT_ENGINE", TRAINWATT_PACKAGE_ENGINE, 0);
#endif
}

}  // namespace tw
