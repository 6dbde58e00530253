#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "cli/command.hpp"

namespace tw::cli {
namespace {

ExitCode run(const Command& command, const Console& start) {
  Console console = start;
  try {
    const ExitCode code = command.run(console);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      console.error(fmt::format("standard output cannot be written ({})", std::strerror(errno)));
      return ExitCode::bad_input;
    }
    return code;
  } catch (const InputError& error) {
    console.error(error.what());
    return ExitCode::bad_input;
  } catch (const DoesNotFit& error) {
    console.error(fmt::format("does not fit: {}", error.what()));
    return ExitCode::does_not_fit;
  } catch (const SimulationError& error) {
    console.error(fmt::format("simulation failed: {}", error.what()));
    return ExitCode::simulation_failed;
  } catch (const std::bad_alloc&) {
    console.error("simulation failed: out of memory");
    return ExitCode::simulation_failed;
  } catch (const std::exception& error) {
    console.error(
        fmt::format("internal error: {}; please report it with the command line and the inputs", error.what()));
    return ExitCode::bug;
  }
}

}  // namespace

int application(const std::vector<std::string>& arguments) {
  Console console;
  try {
    const Parsed parsed = parse(commands(), arguments);
    if (parsed.command != nullptr) return static_cast<int>(run(*parsed.command, console));
    std::fputs(parsed.text.c_str(), parsed.to_stderr ? stderr : stdout);
    return static_cast<int>(parsed.code);
  } catch (const std::exception& error) {
    console.error(fmt::format("internal error: {}; please report it with the command line", error.what()));
    return static_cast<int>(ExitCode::bug);
  }
}

}  // namespace tw::cli
