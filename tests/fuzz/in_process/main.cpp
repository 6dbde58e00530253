// Fuzzes the program without starting it: batches of cases in forked children, so that a crash, a hang or a fault is
// known for the one case that it belongs to and the next goes on. What is held is what fuzz.py holds.
//
//   fuzz_in_process --root . [--seed 1] [--first 0] [--most N] [--seconds 10] [--simulated 0.03] [--store DIR] [--only
//   KIND]
//
// Prints the count, the seed, exit codes and faults; exits 1 where there is a fault. With --store each fault becomes a
// file that fuzz.py --replay runs and fuzz.py --shrink makes small. Case n of a seed is the same everywhere.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cases.hpp"
#include "cli/command.hpp"
#include "cli/formats.hpp"
#include "core/files.hpp"
#include "held.hpp"
#include "network/preload.hpp"
#include "study/hall_study.hpp"
#include "study/sweep.hpp"

namespace tw::cli {
Command hall_command();
}

namespace tw::fuzz {
namespace {

namespace fs = std::filesystem;
constexpr rlim_t kCpu_s = 20;           // that an answer may take
constexpr rlim_t kMemory = 6UL << 30U;  // of address space
constexpr uint64_t kBatch = 2000;       // cases a child
constexpr int kFault = 77;              // exit code of a child that tells a fault
constexpr size_t kMostOfAFamily = 12;   // faults that are written out

struct Arguments {
  std::string root = ".", store, only;
  uint64_t seed = 1, first = 0, most = ~uint64_t{0};
  double seconds = 10, simulated = 0.03;
};

// Where the child is and what it counted; in memory that parent and child share.
struct Shared {
  uint64_t number = 0, done = 0, accepted = 0, simulated = 0;
  std::array<uint64_t, 8> codes{};
  std::array<char, 256> why{};
  std::array<char, 2048> detail{};
};

std::string taken(int fd) {
  std::string text(static_cast<size_t>(std::max<off_t>(0, ::lseek(fd, 0, SEEK_END))), '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(n < 0 ? 0 : static_cast<size_t>(n));
  if (::ftruncate(fd, 0) != 0) text.clear();
  ::lseek(fd, 0, SEEK_SET);
  return text;
}

// A child: its stdout and stderr are files in memory that each command finds empty.
class Child {
 public:
  Child(const Arguments& a, const Corpus& corpus, Shared& shared, std::string folder)
      : a_(a), corpus_(corpus), shared_(shared), folder_(std::move(folder)) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int& fd : fds_) fd = memfd_create("out", 0);
    ::dup2(fds_[0], STDOUT_FILENO);
    ::dup2(fds_[1], STDERR_FILENO);
    [[maybe_unused]] const rlimit memory{kMemory, kMemory};
    const rlimit none{0, 0};
#ifndef __SANITIZE_ADDRESS__  // its shadow alone is larger
    setrlimit(RLIMIT_AS, &memory);
#endif
    setrlimit(RLIMIT_CORE, &none);
  }

  [[noreturn]] void run(uint64_t end) {
    for (; shared_.number < end; ++shared_.number) {
      rusage used{};
      getrusage(RUSAGE_SELF, &used);
      const rlim_t until = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + kCpu_s;
      const rlimit cpu{until, RLIM_INFINITY};
      setrlimit(RLIMIT_CPU, &cpu);
      if (const Wrong wrong = one(corpus_.make(a_.seed, shared_.number))) tell(*wrong);
      ++shared_.done;
    }
    ::_exit(0);
  }

 private:
  [[noreturn]] void tell(const std::pair<std::string, std::string>& wrong) {
    std::strncpy(shared_.why.data(), wrong.first.c_str(), shared_.why.size() - 1);
    std::strncpy(shared_.detail.data(), wrong.second.c_str(), shared_.detail.size() - 1);
    ::_exit(kFault);
  }

  // The exit code of reading an input that no command reads without simulating.
  static int load(const Words& words) {
    Faults faults;
    Words sets;
    for (size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "--set") sets.push_back(words[i + 1]);
    try {
      if (words[0] == "hall")
        load_hall(words[1], sets, faults);
      else
        load_study(words[1], sets, faults);
      faults.throw_if_any();
      return 0;
    } catch (const InputError& error) {
      std::fputs(error.what(), stderr);
      return 2;
    } catch (const std::exception& error) {
      std::fputs(error.what(), stderr);
      return 1;
    }
  }

  int answer(const Words& words, bool load_only) const {
    if (load_only) return load(words);
    using Maker = cli::Command (*)();
    static const std::map<std::string, Maker> makers{
        {"run", cli::run_command},         {"check", cli::check_command},   {"topology", cli::topology_command},
        {"hall", cli::hall_command},       {"sweep", cli::sweep_command},   {"collective", cli::collective_command},
        {"compare", cli::compare_command}, {"report", cli::report_command}, {"timeline", cli::timeline_command},
        {"import", cli::import_command},   {"read", cli::read_command}};
    // Made anew: options that are not given have their defaults.
    return cli::application(words, {cli::with_formats(makers.at(words[0])())});
  }

  Wrong one(const Case& made) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    fs::create_directories(folder_);
    for (const auto& [name, text] : made.files) write_file(folder_ + "/" + name, text);
    bool checked = false;
    for (const Words& command : made.commands) {
      Words words;
      for (std::string word : command) {
        for (size_t at = 0; (at = word.find("@/", at)) != std::string::npos; at += folder_.size())
          word.replace(at, 1, folder_);
        words.push_back(word);
      }
      const int code = answer(words, made.load_only);
      std::fflush(stdout);
      std::fflush(stderr);
      const std::string out = taken(fds_[0]), err = taken(fds_[1]);
      ++shared_.codes[static_cast<size_t>(code) % shared_.codes.size()];
      if (Wrong wrong = broken_answer(code, out, err)) return wrong;
      const std::string& name = command[0];
      if (checked && name == "run" && code == 2) return {{"run refuses what check accepts", err}};
      for (const auto& entry : fs::directory_iterator(folder_))
        if (entry.path().extension() == ".part") return {{"a part of a file is left", entry.path()}};
      const bool json = std::find(words.begin(), words.end(), "--json") != words.end() && !made.load_only;
      if (json && (code == 0 || (code == 4 && name == "run")))
        if (Wrong wrong = impossible(out)) return wrong;
      if (name == "run" && code == 0) ++shared_.simulated;
      if (code != 0) return std::nullopt;
      checked = checked || name == "check";
    }
    ++shared_.accepted;
    return std::nullopt;
  }

  const Arguments& a_;
  const Corpus& corpus_;
  Shared& shared_;
  const std::string folder_;
  std::array<int, 2> fds_{};
};

std::string base64(const std::string& bytes) {
  static const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) { return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U; };
    const unsigned word = byte(0) << 16U | byte(1) << 8U | byte(2);
    for (size_t k = 0; k < 4; ++k) out += k <= bytes.size() - i ? digits[word >> (18 - 6 * k) & 63U] : '=';
  }
  return out;
}

void store(const std::string& folder, const Case& made, const std::string& why, const std::string& detail) {
  nlohmann::json record{{"why", why},
                        {"detail", detail},
                        {"kind", made.kind},
                        {"commands", made.commands},
                        {"files", nlohmann::json::object()}};
  for (const auto& [name, text] : made.files) record["files"][name] = base64(text);
  const std::string text = record.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  write_file(folder + "/" + made.kind + "-" + sha256_hex(text).substr(0, 10) + ".json", text);
}

// Children one after the other; the number and the reason of every fault.
class Driver {
 public:
  explicit Driver(Arguments a) : a_(std::move(a)), corpus_(a_.root, a_.simulated) {
    corpus_.only(a_.only);
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared;
    shared_->number = a_.first;
    folder_ = fmt::format("{}/trainwatt-fuzz-{}", fs::exists("/dev/shm") ? "/dev/shm" : "/tmp", ::getpid());
    network::preload_engine();
  }

  int run() {
    const auto start = std::chrono::steady_clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    double told = 0;
    const uint64_t end = a_.most > ~uint64_t{0} - a_.first ? ~uint64_t{0} : a_.first + a_.most;
    while (shared_->number < end && passed() < a_.seconds) {
      const uint64_t batch = std::min(end, shared_->number + kBatch);
      while (shared_->number < batch && passed() < a_.seconds) child(batch, a_.seconds - passed());
      if (passed() - told < 60) continue;
      told = passed();
      say(told);
    }
    say(passed());
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    return faults_ > 0 ? 1 : 0;
  }

 private:
  // Runs cases up to `end`, for `seconds` at most. A child that ends early is blamed on its case.
  void child(uint64_t end, double seconds) {
    std::fflush(stdout);
    const pid_t pid = ::fork();
    if (pid == 0) Child(a_, corpus_, *shared_, folder_).run(end);
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    int status = 0;
    uint64_t last = ~uint64_t{0};
    auto moved = std::chrono::steady_clock::now();
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      ::usleep(2000);
      const auto now = std::chrono::steady_clock::now();
      if (last != shared_->number) last = shared_->number, moved = now;
      const bool stuck = now - moved > std::chrono::seconds(12 * kCpu_s);
      if (now < until && !stuck) continue;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      if (!stuck) return;  // time is up
      return blame("no answer in time", "");
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kFault) return blame(shared_->why.data(), shared_->detail.data());
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) return blame("no answer in time", "");
    blame(WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                              : fmt::format("the program ended, {}", WEXITSTATUS(status)),
          "");
  }

  void blame(const std::string& why, const std::string& detail) {
    const Case made = corpus_.make(a_.seed, shared_->number);
    ++faults_;
    if (++known_[why + " | " + made.kind] <= kMostOfAFamily) {
      fmt::print("case {}: {}: {}\n", shared_->number, why, detail);
      for (const Words& words : made.commands) fmt::print("  trainwatt '{}'\n", fmt::join(words, "' '"));
      if (!a_.store.empty()) store(a_.store, made, why, detail);
    }
    shared_->why.fill(0);
    shared_->detail.fill(0);
    ++shared_->number;
    ++shared_->done;
  }

  void say(double seconds) const {
    fmt::print("seed {}: {} inputs from {} on in {:.0f} s, {} accepted to the end, {} simulated, exit codes", a_.seed,
               shared_->done, a_.first, seconds, shared_->accepted, shared_->simulated);
    for (size_t i = 0; i < shared_->codes.size(); ++i)
      if (shared_->codes[i] > 0) fmt::print(" {}: {}", i, shared_->codes[i]);
    fmt::print("; {} faults", faults_);
    for (const auto& [family, count] : known_) fmt::print("; {} {}", count, family);
    fmt::print("\n");
    std::fflush(stdout);
  }

  const Arguments a_;
  Corpus corpus_;
  Shared* shared_ = nullptr;
  std::string folder_;
  size_t faults_ = 0;
  std::map<std::string, size_t> known_;
};

int main_of(const Words& words) {
  Arguments a;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string& value = words[i + 1];
    if (words[i] == "--root") a.root = value;
    if (words[i] == "--store") a.store = value;
    if (words[i] == "--only") a.only = value;
    if (words[i] == "--seed") a.seed = std::stoull(value);
    if (words[i] == "--first") a.first = std::stoull(value);
    if (words[i] == "--most") a.most = std::stoull(value);
    if (words[i] == "--seconds") a.seconds = std::stod(value);
    if (words[i] == "--simulated") a.simulated = std::stod(value);
  }
  fs::current_path(a.root);
  a.root = fs::current_path();
  ::setenv("TRAINWATT_DATA", a.root.c_str(), 1);
  return Driver(a).run();
}

}  // namespace
}  // namespace tw::fuzz

int main(int argc, char** argv) {
  return tw::fuzz::main_of({argv + 1, argv + argc});
}
