#include <fcntl.h>
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

// A file that is opened may not take the number of a stream that the caller closed: it would get what is meant for it.
// What stands in for an output cannot be written, so that it is said.
void hold_standard_streams() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) {
      const int opened = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
      (void)opened;  // the lowest number that is free: this one
    }
}

}  // namespace

int main(int argc, char** argv) {
  main_process = ::getpid();
  hold_standard_streams();
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
