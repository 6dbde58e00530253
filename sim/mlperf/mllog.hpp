// Lines of MLPerf logs: events after ":::MLLOG", anywhere in the ordinary output of a job (mlcommons/logging, mllog).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw {

struct MllogValue {
  std::optional<double> number;
  std::string text;  // of a text; true and false are numbers too
};

struct MllogEvent {
  enum class Kind { point, start, end };
  size_t line = 0;  // from 1
  int64_t time_ms = 0;
  Kind kind = Kind::point;
  std::string key;
  MllogValue value;
  // The members of the metadata, and of a value that is an object (tracked_stats).
  std::vector<std::pair<std::string, MllogValue>> fields;

  std::optional<double> number(std::string_view field) const;
  std::string text(std::string_view field) const;
};

// What is wrong with a file: each kind once, with the first line it was seen in.
struct LogFault {
  std::string kind;  // unreadable, empty, no_events, binary, long_line, broken_json, cut_off
  size_t line = 0;   // 0: the file as a whole
  size_t count = 1;
  std::string what;
};

struct LogScan {
  size_t lines = 0, events = 0;
  std::vector<LogFault> faults;
};

// Longest line that is read; of a longer one the rest is passed over.
constexpr size_t kLongestLogLine = 1 << 20;

// Reads a file of any size line by line and hands over its events in order. Never throws for what the file holds.
LogScan read_mllog(const std::string& path, const std::function<void(const MllogEvent&)>& event);

}  // namespace tw
