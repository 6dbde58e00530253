// Runs the built program as a user would.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/files.hpp"
#include "paths.hpp"

namespace program {

namespace fs = std::filesystem;

// A folder of its own, gone with its owner.
class Folder {
 public:
  Folder() {
    static int number = 0;
    path_ =
        fs::temp_directory_path() / ("trainwatt_cli_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string put(const std::string& name, const std::string& text) const {
    tw::write_file(*this / name, text);
    return *this / name;
  }
  size_t files() const { return static_cast<size_t>(std::distance(fs::recursive_directory_iterator(path_), {})); }

 private:
  fs::path path_;
};

struct Run {
  int code = -1;
  std::string out, err;
  double cpu_s = 0, peak_bytes = 0;  // of the program and of all that it started
  size_t error_lines() const { return static_cast<size_t>(std::count(err.begin(), err.end(), '\n')); }
};

// `interrupt_after`: sends SIGINT to the program after this many milliseconds. `out_file`: stdout goes there instead.
inline Run run(const std::vector<std::string>& arguments, int interrupt_after_ms = -1, const char* out_file = nullptr) {
  const Folder folder;
  const std::string out = folder / "out", err = folder / "err";
  std::vector<std::string> words{program_folder() + "/trainwatt"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const pid_t child = ::fork();
  if (child == 0) {
    const int o = ::open(out_file ? out_file : out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int e = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(o, 1);
    ::dup2(e, 2);
    if (::chdir(source_folder().c_str()) != 0) ::_exit(99);
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(98);
  }
  if (interrupt_after_ms >= 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(interrupt_after_ms));
    ::kill(child, SIGINT);
  }
  int status = 0;
  rusage used{};
  ::wait4(child, &status, 0, &used);
  Run r;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  r.cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime);
  r.peak_bytes = 1024.0 * static_cast<double>(used.ru_maxrss);
  r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  if (out_file == nullptr) r.out = tw::read_file(out);
  r.err = tw::read_file(err);
  return r;
}

inline bool holds(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) UNSCOPED_INFO("\"" << part << "\" is not in:\n" << text);
  return found;
}

inline const std::string k1 = "scenarios/smc-llama2-70b-lora-1n.json", k8 = "scenarios/smc-llama2-70b-lora-8n.json",
                         k9 = "scenarios/smc-llama2-70b-lora-9n.json", k64 = "scenarios/smc-llama2-70b-lora-64n.json",
                         kUnet = "scenarios/smc-unet3d-9n.json", kCluster = "topologies/smc-h100.json";

}  // namespace program
