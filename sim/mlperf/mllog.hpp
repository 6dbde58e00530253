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

// Something that a reader of the data should know: damage of a file, or data of doubtful quality.
struct LogFinding {
  std::string file;  // below the imported folder
  size_t line = 0;   // 0: the file as a whole
  std::string kind;  // "late_start", "broken_json" ...
  std::string what;
};

struct LogScan {
  size_t lines = 0, events = 0;
};

// Longest line that is read; of a longer one the rest is passed over, and a file that has no line end for this long is
// no log (a disk image, a sparse file): the rest of it is not read.
constexpr size_t kLongestLogLine = 1 << 20;
constexpr size_t kMostPassedOver = 64 << 20;

// Reads a file of any size line by line and hands over its events in order. Never throws for what the file holds: each
// kind of damage (unreadable, empty, no_events, no_lines, binary, long_line, broken_json, cut_off) becomes one finding
// under the name `file`, with the first line it was seen in.
LogScan read_mllog(const std::string& path, const std::string& file, std::vector<LogFinding>& findings,
                   const std::function<void(const MllogEvent&)>& event);

}  // namespace tw
