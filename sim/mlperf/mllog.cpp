#include "mlperf/mllog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/text.hpp"

namespace tw {
namespace {

using nlohmann::json;

constexpr std::string_view kMark = ":::MLLOG";
constexpr size_t kBlock = 1 << 16;

// End of the object that begins at text[0] == '{', past its brace; npos when it does not end.
size_t object_end(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// Python writes NaN and Infinity, which JSON does not know: null in their place.
std::string without_nan(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\' && i + 1 < text.size()) {
      out += text.substr(i++, 2);
      continue;
    }
    if (c == '"') quoted = !quoted;
    bool replaced = false;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (quoted || replaced || text.substr(i, word.size()) != word) continue;
      out += "null";
      i += word.size() - 1;
      replaced = true;
    }
    if (!replaced) out += c;
  }
  return out;
}

MllogValue value_of(const json& j) {
  MllogValue v;
  if (j.is_boolean()) v.number = j.get<bool>() ? 1 : 0;
  if (j.is_number() && std::isfinite(j.get<double>())) v.number = j.get<double>();
  if (j.is_string()) v.text = j.get<std::string>();
  return v;
}

void add_fields(MllogEvent& event, const json& object) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) event.fields.emplace_back(key, value_of(value));
}

// Empty when the object is an event.
std::string read_event(std::string_view text, MllogEvent& event) {
  json j = json::parse(text.begin(), text.end(), nullptr, false);
  if (j.is_discarded()) {
    const std::string repaired = without_nan(text);
    j = json::parse(repaired, nullptr, false);
  }
  if (!j.is_object()) return "no JSON object";
  const auto time = j.find("time_ms"), key = j.find("key"), kind = j.find("event_type");
  if (time == j.end() || !time->is_number()) return "no time_ms";
  if (key == j.end() || !key->is_string()) return "no key";
  const double ms = time->get<double>();
  if (!(std::abs(ms) < 9e15)) return "time_ms is out of range";
  event.time_ms = std::llround(ms);
  event.key = key->get<std::string>();
  const std::string type = kind != j.end() && kind->is_string() ? kind->get<std::string>() : "";
  event.kind = type == "INTERVAL_START" ? MllogEvent::Kind::start
               : type == "INTERVAL_END" ? MllogEvent::Kind::end
                                        : MllogEvent::Kind::point;
  event.value = {};
  event.fields.clear();
  if (const auto value = j.find("value"); value != j.end()) {
    event.value = value_of(*value);
    add_fields(event, *value);
  }
  if (const auto metadata = j.find("metadata"); metadata != j.end()) add_fields(event, *metadata);
  return "";
}

// Node files are thousands of lines of one form; those are read without a JSON tree. Where the object ends; 0: read it
// as JSON.
size_t read_reading(std::string_view text, MllogEvent& event) {
  constexpr std::string_view a = R"({"namespace": "", "time_ms": )";
  constexpr std::string_view b = R"(, "event_type": "POINT_IN_TIME", "key": "power_reading", "value": )";
  constexpr std::string_view c = R"(, "metadata": ""})";
  if (text.substr(0, a.size()) != a) return 0;
  const char* const end = text.data() + text.size();
  int64_t time = 0, watts = 0;
  const auto t = std::from_chars(text.data() + a.size(), end, time);
  if (t.ec != std::errc() || std::string_view(t.ptr, std::min<size_t>(b.size(), end - t.ptr)) != b) return 0;
  const auto w = std::from_chars(t.ptr + b.size(), end, watts);
  if (w.ec != std::errc() || std::string_view(w.ptr, std::min<size_t>(c.size(), end - w.ptr)) != c) return 0;
  event.time_ms = time;
  event.key = "power_reading";
  event.kind = MllogEvent::Kind::point;
  event.value.number = static_cast<double>(watts);
  event.value.text.clear();
  event.fields.clear();
  return static_cast<size_t>(w.ptr + c.size() - text.data());
}

class Scanner {
 public:
  explicit Scanner(const std::function<void(const MllogEvent&)>& event) : event_(event) {}

  LogScan read(const std::string& path, const std::string& file, std::vector<LogFinding>& findings) {
    read(path);
    for (Fault& f : faults_)
      findings.push_back(
          {file, f.line, f.kind, f.count > 1 ? fmt::format("{} ({} such lines)", f.what, f.count) : f.what});
    return scan_;
  }

 private:
  struct Fault {
    std::string kind;
    size_t line = 0, count = 1;
    std::string what;
  };

  void read(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    if (!file) {
      return fault("unreadable", 0, fmt::format("cannot be read ({})", std::strerror(errno)));
    }
    const auto block = std::make_unique_for_overwrite<char[]>(kBlock);
    bool any = false;
    for (size_t size; (size = std::fread(block.get(), 1, kBlock, file.get())) > 0;) {
      any = true;
      take({block.get(), size});
      if (passed_ > kMostPassedOver) {
        fault("no_lines", scan_.lines + 1, fmt::format("no line end for {} MiB; the rest is not read", passed_ >> 20));
        break;
      }
    }
    if (std::ferror(file.get()) != 0) fault("unreadable", scan_.lines + 1, "cannot be read further");
    last_ = true;
    if (!line_.empty()) line(line_);
    if (!any)
      fault("empty", 0, "the file is empty");
    else if (scan_.events == 0)
      fault("no_events", 0, "no line of it is an MLLOG event");
  }

  void take(std::string_view block) {
    while (!block.empty()) {
      const size_t end = block.find('\n');
      const std::string_view part = block.substr(0, end);
      const bool ends = end != std::string_view::npos;
      if (line_.empty() && ends && part.size() <= kLongestLogLine) {
        line(part);
      } else {
        const size_t room = kLongestLogLine - std::min(kLongestLogLine, line_.size());
        if (part.size() > room && !passing_) {
          passing_ = true;
          fault("long_line", scan_.lines + 1, fmt::format("a line of more than {} bytes", kLongestLogLine));
        }
        line_.append(part.substr(0, room));
        if (ends) {
          line(line_);
          line_.clear();
        }
      }
      passed_ = ends ? 0 : passed_ + part.size();
      if (!ends) return;
      passing_ = false;
      block.remove_prefix(end + 1);
    }
  }

  void line(std::string_view text) {
    event_now_.line = ++scan_.lines;
    if (std::memchr(text.data(), '\0', text.size()) != nullptr)
      fault("binary", scan_.lines, "holds bytes that are no text");
    for (size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark, at)) {
      at += kMark.size();
      const size_t begin = text.find_first_not_of(" \t", at);
      std::string problem = "no JSON object";
      size_t end = std::string_view::npos;
      if (begin != std::string_view::npos && text[begin] == '{') {
        const std::string_view rest = text.substr(begin);
        if (const size_t length = read_reading(rest, event_now_); length > 0) {
          end = length;
          problem.clear();
        } else {
          end = object_end(rest);
          problem = end == std::string_view::npos ? "the JSON object does not end"
                                                  : read_event(rest.substr(0, end), event_now_);
        }
      }
      if (problem.empty()) {
        ++scan_.events;
        event_(event_now_);
        at = begin + end;
      } else if (last_ && end == std::string_view::npos) {
        fault("cut_off", scan_.lines, "the file ends inside an MLLOG event");
      } else {
        fault("broken_json", scan_.lines,
              fmt::format("{} after {}: \"{}\"", problem, kMark, printable(text.substr(at), 60)));
      }
    }
  }

  void fault(const std::string& kind, size_t line, std::string what) {
    for (Fault& known : faults_)
      if (known.kind == kind) {
        ++known.count;
        return;
      }
    faults_.push_back({kind, line, 1, std::move(what)});
  }

  const std::function<void(const MllogEvent&)>& event_;
  LogScan scan_;
  std::vector<Fault> faults_;
  MllogEvent event_now_;
  std::string line_;
  size_t passed_ = 0;  // since the last line end
  bool passing_ = false, last_ = false;
};

const MllogValue* find(const MllogEvent& event, std::string_view field) {
  for (const auto& [key, value] : event.fields)
    if (key == field) return &value;
  return nullptr;
}

}  // namespace

std::optional<double> MllogEvent::number(std::string_view field) const {
  const MllogValue* v = find(*this, field);
  return v != nullptr ? v->number : std::nullopt;
}

std::string MllogEvent::text(std::string_view field) const {
  const MllogValue* v = find(*this, field);
  return v != nullptr ? v->text : "";
}

LogScan read_mllog(const std::string& path, const std::string& file, std::vector<LogFinding>& findings,
                   const std::function<void(const MllogEvent&)>& event) {
  return Scanner(event).read(path, file, findings);
}

}  // namespace tw
