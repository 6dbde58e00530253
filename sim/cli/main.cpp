#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "core/files.hpp"

namespace {

// Set once before any child is forked; children of a simulation inherit the handler and end without a word.
pid_t main_process = 0;

extern "C" void interrupted(int) {
  static const char text[] = "\ninterrupted\n";
  if (::getpid() == main_process) {
    tw::remove_partial_files();
    const ssize_t ignored = ::write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
  }
  ::_exit(static_cast<int>(tw::ExitCode::interrupted));
}

}  // namespace

int main(int argc, char** argv) {
  main_process = ::getpid();
  struct sigaction action {};
  action.sa_handler = interrupted;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup, a shell's background
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its writer, with its name
  return tw::cli::application(std::vector<std::string>(argv + 1, argv + argc));
}
