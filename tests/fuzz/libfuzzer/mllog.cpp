// Lines of MLPerf logs.
#include "mlperf/mllog.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = memfd_create("log", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) __builtin_trap();
  std::vector<tw::LogFinding> findings;
  size_t events = 0;
  const tw::LogScan scan = tw::read_mllog(path, "in", findings, [&](const tw::MllogEvent&) { ++events; });
  if (scan.events != events || events > scan.lines) __builtin_trap();
  return 0;
}
