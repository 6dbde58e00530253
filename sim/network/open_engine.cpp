// Finds and opens the engine module.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "network/engine.hpp"
#include "network/preload.hpp"

namespace tw::network {
namespace {

std::vector<std::string> places() {
  std::vector<std::string> list;
  if (const char* named = std::getenv("TRAINWATT_ENGINE"); named != nullptr && *named != '\0') return {named};
  std::array<char, 4096> buffer{};
  const ssize_t n = readlink("/proc/self/exe", buffer.data(), buffer.size() - 1);
  if (n > 0) {
    const std::string self(buffer.data(), static_cast<size_t>(n));
    const std::string folder = self.substr(0, self.rfind('/'));
    for (const char* below : {"/", "/../lib/", "/../lib/trainwatt/"})
      list.push_back(folder + below + "trainwatt_engine.so");
  }
  return list;
}

using Factory = void (*)(const std::vector<Link>&, const std::vector<LoadClass>&, std::unique_ptr<Engine>&);

Factory open_module() {
  std::string tried;
  for (const std::string& path : places()) {
    // Never closed: the engine's code must outlive every object it made.
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module != nullptr) {
      void* symbol = dlsym(module, "trainwatt_open_engine");
      if (symbol == nullptr) throw SimulationError(fmt::format("{} is not an engine module", path));
      return reinterpret_cast<Factory>(symbol);  // NOLINT: what dlsym is for
    }
    const char* why = dlerror();
    tried += fmt::format("\n  {}", why != nullptr ? why : path);
  }
  throw SimulationError(fmt::format("the engine module trainwatt_engine.so cannot be opened:{}", tried));
}

}  // namespace

namespace {
Factory module_factory() {
  static const Factory factory = open_module();
  return factory;
}
}  // namespace

void preload_engine() {
  module_factory();
}

std::unique_ptr<Engine> open_engine(const std::vector<Link>& links, const std::vector<LoadClass>& classes) {
  std::unique_ptr<Engine> engine;
  module_factory()(links, classes, engine);
  return engine;
}

}  // namespace tw::network
