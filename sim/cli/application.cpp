#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/wrong_kind.hpp"
#include "core/files.hpp"

namespace tw::cli {
namespace {

// What reached nobody is no success.
ExitCode flushed(const Console& console, ExitCode code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  console.error(fmt::format("standard output cannot be written ({})", std::strerror(errno)));
  return std::max(code, ExitCode::bad_input);
}

// What all commands have in common: --quiet, and outputs that cannot be written.
void prepare(const Command& command, Console& console) {
  std::string to_stdout;
  for (const Option& option : command.options) {
    const std::string name = option.names.substr(0, option.names.find(','));
    if (bool* const* flag = std::get_if<bool*>(&option.target); flag != nullptr && name == "-q") console.quiet = **flag;
    if (option.output == Output::none) continue;
    const std::string& path = **std::get_if<std::string*>(&option.target);
    if (option.output == Output::folder)
      check_output_folder(name, path, console.faults);
    else
      check_output_file(name, path, console.faults);
    if (path != "-" || option.output != Output::file) continue;
    if (!to_stdout.empty())
      console.faults.add({name, "", "stdout is taken by " + to_stdout, "a file name for one of them"});
    to_stdout = name;
  }
}

ExitCode run(const Command& command, Console console) {
  try {
    prepare(command, console);
    return flushed(console, command.run(console));
  } catch (const InputError& error) {
    console.error(InputError(told_by_kind(error.faults())).what());
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
  } catch (const std::system_error& error) {  // the machine refuses: descriptors, folders, processes
    console.error(fmt::format("simulation failed: {}", error.what()));
    return ExitCode::simulation_failed;
  } catch (const std::exception& error) {
    console.error(
        fmt::format("internal error: {}; please report it with the command line and the inputs", error.what()));
    return ExitCode::bug;
  }
}

}  // namespace

std::optional<std::string> named_file(const std::string& name, Faults& faults) {
  auto path = find_input_file(name, "");
  if (!path) faults.add({name, "", "there is no such file", suggest_file(name)});
  return path;
}

int application(const std::vector<std::string>& arguments, const std::vector<Command>& known) {
  Console console;
  try {
    const Parsed parsed = parse(known, arguments);
    if (parsed.command != nullptr) return static_cast<int>(run(*parsed.command, console));
    std::fputs(parsed.text.c_str(), parsed.to_stderr ? stderr : stdout);
    return static_cast<int>(flushed(console, parsed.code));
  } catch (const std::exception& error) {
    console.error(fmt::format("internal error: {}; please report it with the command line", error.what()));
    return static_cast<int>(ExitCode::bug);
  }
}

}  // namespace tw::cli
