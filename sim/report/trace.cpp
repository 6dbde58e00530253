#include "report/trace.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace tw::report {
namespace {
using json = nlohmann::ordered_json;
constexpr std::array<const char*, 3> kStreams{"device", "network", "host"};
}  // namespace

std::string chrome_trace(const std::string& scenario, double step_s, const std::vector<Span>& spans) {
  json events = json::array();
  std::set<int> stages;
  for (const Span& s : spans) stages.insert(s.stage);
  for (const int stage : stages) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", stage},
                      {"args", {{"name", fmt::format("pipeline stage {}", stage)}}}});
    for (size_t t = 0; t < kStreams.size(); ++t)
      events.push_back(
          {{"name", "thread_name"}, {"ph", "M"}, {"pid", stage}, {"tid", t}, {"args", {{"name", kStreams[t]}}}});
  }
  for (const Span& s : spans) {
    json args = {{"micro_batch", s.visit.micro_batch}, {"chunk", s.visit.chunk}};
    if (s.bytes > 0) args["bytes"] = s.bytes;
    const auto stream = static_cast<size_t>(s.stream);
    events.push_back({{"name", s.what},
                      {"cat", kStreams.at(stream)},
                      {"ph", "X"},
                      {"ts", s.begin_s * 1e6},
                      {"dur", (s.end_s - s.begin_s) * 1e6},
                      {"pid", s.stage},
                      {"tid", stream},
                      {"args", args}});
  }
  const json all = {{"traceEvents", events},
                    {"displayTimeUnit", "ms"},
                    {"otherData", {{"scenario", scenario}, {"step_s", step_s}, {"trainwatt", TW_VERSION}}}};
  return all.dump() + "\n";
}

}  // namespace tw::report
