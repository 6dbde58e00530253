// Result and power files made by hand.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "core/files.hpp"
#include "mlperf/submission.hpp"

namespace made {

namespace fs = std::filesystem;

// A folder of its own that goes with the test.
class Tree {
 public:
  Tree() {
    static int number = 0;
    path_ =
        fs::temp_directory_path() / ("trainwatt_import_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
    fs::create_directories(path_);
  }
  ~Tree() { fs::remove_all(path_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  std::string root() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  void put(const std::string& name, const std::string& text) const { tw::write_file(*this / name, text); }

 private:
  fs::path path_;
};

inline std::string event(int64_t ms, const std::string& key, const std::string& kind = "POINT_IN_TIME",
                         const std::string& value = "null", const std::string& metadata = "\"\"") {
  return "0: :::MLLOG {\"namespace\": \"\", \"time_ms\": " + std::to_string(ms) + ", \"event_type\": \"" + kind +
         "\", \"key\": \"" + key + "\", \"value\": " + value + ", \"metadata\": " + metadata + "}\n";
}

constexpr int64_t kStart = 1'700'000'000'000;

// An event `at_s` after run_start; `metadata` without braces.
inline std::string at(double at_s, const std::string& key, const std::string& value = "null",
                      const std::string& metadata = "") {
  return event(kStart + std::llround(at_s * 1000), key, "POINT_IN_TIME", value, "{" + metadata + "}");
}
inline std::string count_of(const std::string& key, double value) {
  return "\"" + key + "\": " + std::to_string(static_cast<int64_t>(value));
}

// What every compliant log begins with, up to run_start.
inline std::string head(const std::string& benchmark, double gbs, double train_samples) {
  const auto number = [](double v) { return std::to_string(static_cast<int64_t>(v)); };
  std::string text = at(-30, "cache_clear", "true") + at(-30, "init_start");
  text += at(-30, "submission_benchmark", "\"" + benchmark + "\"") + at(-30, "submission_org", "\"me\"") +
          at(-30, "submission_division", "\"closed\"") + at(-30, "submission_status", "\"onprem\"") +
          at(-30, "submission_platform", "\"mine\"") + at(-30, "global_batch_size", number(gbs)) +
          at(-30, "gradient_accumulation_steps", "1") + at(-30, "train_samples", number(train_samples)) +
          at(-30, "eval_samples", "100") + at(-1, "init_stop") + at(0, "run_start");
  return text;
}
inline std::string stop(double at_s, const std::string& metadata = "") {
  return at(at_s, "run_stop", "null", "\"status\": \"success\"" + (metadata.empty() ? "" : ", " + metadata));
}

inline tw::ImportedRun read(const std::string& text, std::vector<tw::LogFinding>& findings) {
  const Tree t;
  t.put("result_0.txt", text);
  return tw::read_run(t / "result_0.txt", "result_0.txt", findings);
}

inline const tw::LogFinding* found(const std::vector<tw::LogFinding>& findings, const std::string& kind) {
  const auto f = std::find_if(findings.begin(), findings.end(), [&](const auto& one) { return one.kind == kind; });
  return f == findings.end() ? nullptr : &*f;
}
inline size_t count(const std::vector<tw::LogFinding>& findings, const std::string& kind) {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const auto& one) { return one.kind == kind; }));
}

}  // namespace made
