#include "network/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

#include "core/text.hpp"

namespace tw {
namespace {

constexpr int kWakes_ms = 100;  // who waits for children looks up so often

using Clock = std::chrono::steady_clock;

struct Child {
  size_t index = 0;
  pid_t pid = -1;
  int answer = -1, errors = -1;  // read ends
  Clock::time_point begun;
  std::string answer_text, error_text;
  bool late = false;
};

void write_all(int fd, const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    at += static_cast<size_t>(n);
  }
}

// First character of an answer: exit code; then the length in 16 hexadecimal digits, so that a cut-off answer shows.
std::string framed(ExitCode code, const std::string& text) {
  return fmt::format("{}{:016x}{}", static_cast<char>('A' + static_cast<int>(code)), text.size(), text);
}

// No orphan when the parent is killed, also between the fork and this.
void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

[[noreturn]] void be_child(int answer, int errors, size_t index, const std::function<std::string(size_t)>& work) {
  for (const int s : {SIGINT, SIGTERM, SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGPIPE}) std::signal(s, SIG_DFL);
  dup2(errors, STDERR_FILENO);
  std::string out;
  try {
    out = framed(ExitCode::done, work(index));
  } catch (const InputError& e) {
    out = framed(ExitCode::bad_input, e.what());
  } catch (const DoesNotFit& e) {
    out = framed(ExitCode::does_not_fit, e.what());
  } catch (const SimulationError& e) {
    out = framed(ExitCode::simulation_failed, e.what());
  } catch (const std::bad_alloc&) {
    out = framed(ExitCode::simulation_failed, "out of memory");
  } catch (const std::exception& e) {
    out = framed(ExitCode::bug, e.what());
  } catch (...) {
    out = framed(ExitCode::bug, "an exception of unknown type");
  }
  write_all(answer, out);
  _exit(0);  // skips destructors on purpose: SimGrid's take longer than the simulation
}

Child spawn(size_t index, const std::function<std::string(size_t)>& work) {
  std::array<int, 2> answer{}, errors{};
  if (pipe2(answer.data(), O_CLOEXEC) != 0) throw SimulationError(fmt::format("no pipe: {}", std::strerror(errno)));
  if (pipe2(errors.data(), O_CLOEXEC) != 0) {
    close(answer[0]);
    close(answer[1]);
    throw SimulationError(fmt::format("no pipe: {}", std::strerror(errno)));
  }
  std::fflush(nullptr);  // what is buffered must not come out twice
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    end_with(parent);
    close(answer[0]);  // who reads is gone when the parent is
    close(errors[0]);
    be_child(answer[1], errors[1], index, work);
  }
  close(answer[1]);
  close(errors[1]);
  if (pid < 0) {
    close(answer[0]);
    close(errors[0]);
    throw SimulationError(fmt::format("no child process: {}", std::strerror(errno)));
  }
  Child c;
  c.index = index;
  c.pid = pid;
  c.answer = answer[0];
  c.errors = errors[0];
  c.begun = Clock::now();
  return c;
}

// Reads what there is; closes the descriptor at its end.
void drain(int& fd, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) {
    text.append(buffer.data(), static_cast<size_t>(n));
  } else if (n == 0 || errno != EINTR) {
    close(fd);
    fd = -1;
  }
}

std::string last_lines(const std::string& text, size_t most) {
  std::vector<std::string> lines = split(text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  std::string out;
  for (size_t i = lines.size() > most ? lines.size() - most : 0; i < lines.size(); ++i) out += "\n  " + lines[i];
  return out;
}

ChildResult collect(Child& c, double deadline_s) {
  int status = 0;
  rusage used{};
  while (wait4(c.pid, &status, 0, &used) < 0 && errno == EINTR) continue;
  ChildResult r;
  const auto time_s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  r.cpu_s = time_s(used.ru_utime) + time_s(used.ru_stime);
  r.peak_bytes = static_cast<double>(used.ru_maxrss) * 1024;
  constexpr size_t kHead = 17;
  const std::string& a = c.answer_text;
  const bool whole = a.size() >= kHead && std::stoull(a.substr(1, kHead - 1), nullptr, 16) == a.size() - kHead;
  if (c.late) {
    r.code = ExitCode::simulation_failed;
    r.error = fmt::format("did not finish within {} s", deadline_s) + last_lines(c.error_text, 8);
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !whole) {
    r.code = ExitCode::simulation_failed;
    const std::string how = WIFSIGNALED(status)
                                ? fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                                : fmt::format("ended with status {} and no answer", WEXITSTATUS(status));
    r.error = "the simulation process " + how + last_lines(c.error_text, 8);
    // With so little memory that not even the answer that says so can be made, the child ends where it stands.
    if (c.error_text.find("std::bad_alloc") != std::string::npos) r.error = "out of memory";
  } else {
    r.code = static_cast<ExitCode>(a[0] - 'A');
    (r.code == ExitCode::done ? r.value : r.error) = a.substr(kHead);
  }
  return r;
}

using Taken = std::function<void(size_t, ChildResult&&)>;

void run_children(size_t count, const std::function<std::string(size_t)>& work, const Taken& taken,
                  const ChildOptions& options) {
  std::vector<Child> live;
  size_t next = 0, done = 0, most = static_cast<size_t>(std::max(1, options.jobs));
  bool stop = false;
  while (done < count) {
    while (!stop && next < count && live.size() < most) {
      try {
        live.push_back(spawn(next, work));
        ++next;
      } catch (const SimulationError&) {
        if (live.empty()) throw;
        most = live.size();  // no process or descriptor is left for one more: those that are there do
      }
    }
    if (stop && live.empty()) {
      for (; next < count; ++next, ++done) taken(next, {"", "interrupted", ExitCode::interrupted, 0, 0});
      break;
    }
    std::vector<pollfd> fds;
    for (const Child& c : live) {
      fds.push_back({c.answer, POLLIN, 0});
      fds.push_back({c.errors, POLLIN, 0});
    }
    const int ready = poll(fds.data(), fds.size(), kWakes_ms);  // a negative descriptor is skipped
    if (options.progress) options.progress(done, count);
    if (!stop && options.interrupted && options.interrupted()) {
      stop = true;
      for (const Child& c : live) kill(c.pid, SIGKILL);
    }
    for (size_t i = live.size(); i-- > 0;) {
      Child& c = live[i];
      if (ready > 0 && c.answer >= 0 && fds[2 * i].revents != 0) drain(c.answer, c.answer_text);
      if (ready > 0 && c.errors >= 0 && fds[2 * i + 1].revents != 0) drain(c.errors, c.error_text);
      const double age_s = std::chrono::duration<double>(Clock::now() - c.begun).count();
      if (options.deadline_s > 0 && age_s > options.deadline_s && !c.late) {
        c.late = true;
        kill(c.pid, SIGKILL);
      }
      if (c.answer >= 0 || c.errors >= 0) continue;
      ChildResult result = collect(c, options.deadline_s);
      if (stop) result = {"", "interrupted", ExitCode::interrupted, 0, 0};
      const size_t index = c.index;
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
      ++done;
      taken(index, std::move(result));
      if (options.progress) options.progress(done, count);
    }
  }
}

// What the host of the children tells of each: fixed part, then value and error.
struct Frame {
  uint64_t index = 0, value_size = 0, error_size = 0;
  int code = 0;
  double cpu_s = 0, peak_bytes = 0;
};
constexpr uint64_t kEnd = ~uint64_t{0};  // index of the last frame; its error is that of the host itself

void write_frame(int fd, uint64_t index, const ChildResult& r) {
  const Frame frame{index, r.value.size(), r.error.size(), static_cast<int>(r.code), r.cpu_s, r.peak_bytes};
  write_all(fd, std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + r.value + r.error);
}

bool read_all(int fd, char* to, size_t size) {
  while (size > 0) {
    const ssize_t n = read(fd, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// Ends and awaits the host whatever happens; its children die with it.
class Host {
 public:
  Host(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  ~Host() {
    close(fd_);
    if (pid_ > 0) kill(pid_, SIGKILL);
    wait();
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  int wait() {
    int status = 0;
    while (pid_ > 0 && waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
  int fd_;
};

}  // namespace

void stream_from_children(size_t count, const std::function<void()>& prepare,
                          const std::function<std::string(size_t)>& work, const Taken& taken,
                          const ChildOptions& options) {
  std::array<int, 2> results{};
  if (pipe2(results.data(), O_CLOEXEC) != 0) throw SimulationError(fmt::format("no pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    end_with(parent);
    close(results[0]);
    ChildResult end;
    try {
      if (prepare) prepare();
      ChildOptions inner = options;
      inner.progress = {};
      run_children(
          count, work, [&](size_t index, ChildResult&& r) { write_frame(results[1], index, r); }, inner);
    } catch (const std::exception& e) {
      end.error = e.what();
      end.code = ExitCode::simulation_failed;
    }
    write_frame(results[1], kEnd, end);
    _exit(0);
  }
  close(results[1]);
  if (pid < 0) {
    close(results[0]);
    throw SimulationError(fmt::format("no child process: {}", std::strerror(errno)));
  }
  Host host(pid, results[0]);
  size_t done = 0;
  while (true) {
    pollfd next{results[0], POLLIN, 0};
    while (options.progress && poll(&next, 1, kWakes_ms) == 0) options.progress(done, count);
    Frame frame;
    ChildResult r;
    bool whole = read_all(results[0], reinterpret_cast<char*>(&frame), sizeof frame);
    if (whole) {
      r.value.resize(frame.value_size);
      r.error.resize(frame.error_size);
      whole =
          read_all(results[0], r.value.data(), r.value.size()) && read_all(results[0], r.error.data(), r.error.size());
    }
    if (!whole) {
      const int status = host.wait();
      throw SimulationError(fmt::format(
          "the process that ran the simulations ended early{}",
          WIFSIGNALED(status) ? fmt::format(", by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                              : ""));
    }
    r.code = static_cast<ExitCode>(frame.code);
    r.cpu_s = frame.cpu_s, r.peak_bytes = frame.peak_bytes;
    if (frame.index == kEnd) {
      host.wait();
      return rethrow(r);
    }
    taken(frame.index, std::move(r));
    if (options.progress) options.progress(++done, count);
  }
}

std::vector<ChildResult> in_children(size_t count, const std::function<std::string(size_t)>& work,
                                     const ChildOptions& options) {
  std::vector<ChildResult> results(count);
  run_children(
      count, work, [&](size_t index, ChildResult&& r) { results[index] = std::move(r); }, options);
  return results;
}

ChildResult in_child(const std::function<std::string()>& work, double deadline_s) {
  ChildOptions options;
  options.deadline_s = deadline_s;
  return in_children(
             1, [&](size_t) { return work(); }, options)
      .front();
}

void rethrow(const ChildResult& r) {
  switch (r.code) {
    case ExitCode::done:
      return;
    case ExitCode::bad_input:
      throw InputError({{"", "", r.error, ""}});
    case ExitCode::does_not_fit:
      throw DoesNotFit(r.error);
    case ExitCode::simulation_failed:
      throw SimulationError(r.error);
    case ExitCode::bug:
    case ExitCode::interrupted:
      break;
  }
  throw std::runtime_error(r.error);
}

}  // namespace tw
