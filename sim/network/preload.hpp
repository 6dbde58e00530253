// For processes that fork many simulations.
#pragma once

namespace tw::network {

// Opens the engine module without making an engine, so that children forked from here on need not: relocating SimGrid
// costs each of them 25 ms otherwise. Throws SimulationError when the module cannot be opened.
void preload_engine();

}  // namespace tw::network
