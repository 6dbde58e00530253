#include "report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace tw::report {
namespace {
using json = nlohmann::ordered_json;
constexpr std::array<const char*, 3> kStreams{"device", "network", "host"};

// Slices of one track may not overlap: transfers under way at the same time take a track each. Track of each span, and
// the tracks' names by stage and number.
std::vector<size_t> tracks_of(const std::vector<Span>& spans, std::map<std::pair<int, size_t>, std::string>& names) {
  std::vector<size_t> order(spans.size()), track(spans.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return spans[a].begin_s < spans[b].begin_s; });
  std::map<std::pair<int, size_t>, double> free_from;
  for (const size_t i : order) {
    const auto stream = static_cast<size_t>(spans[i].stream);
    size_t lane = 0;
    const auto id = [&] { return stream + kStreams.size() * lane; };
    const double rounding_s = 1e-12;
    while (free_from[{spans[i].stage, id()}] > spans[i].begin_s + rounding_s) ++lane;
    free_from[{spans[i].stage, id()}] = spans[i].end_s;
    track[i] = id();
    names[{spans[i].stage, id()}] = lane == 0 ? kStreams[stream] : fmt::format("{} {}", kStreams[stream], lane + 1);
  }
  return track;
}
}  // namespace

std::string chrome_trace(const std::string& scenario, double step_s, std::vector<Span> spans) {
  json events = json::array();
  std::set<int> stages;
  double last_s = 0;
  for (const Span& s : spans) stages.insert(s.stage), last_s = std::max(last_s, s.end_s);
  // What follows the last kernel belongs to the step, too: bookkeeping, logging, the hand-over of data.
  if (step_s > last_s)
    for (const int stage : stages) {
      Span rest;
      rest.stage = stage, rest.what = "rest of the step", rest.begin_s = last_s, rest.end_s = step_s;
      rest.stream = Span::Stream::host;
      spans.push_back(rest);
    }
  for (const int stage : stages) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", stage},
                      {"args", {{"name", fmt::format("pipeline stage {}", stage)}}}});
  }
  std::map<std::pair<int, size_t>, std::string> names;
  const std::vector<size_t> tracks = tracks_of(spans, names);
  for (const auto& [track, name] : names)
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", track.first},
                      {"tid", track.second},
                      {"args", {{"name", name}}}});
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span& s = spans[i];
    json args = {{"micro_batch", s.visit.micro_batch}, {"chunk", s.visit.chunk}};
    if (s.bytes > 0) args["bytes"] = s.bytes;
    if (s.flops > 0) args["flops"] = s.flops;
    const auto stream = static_cast<size_t>(s.stream);
    events.push_back({{"name", s.what},
                      {"cat", kStreams.at(stream)},
                      {"ph", "X"},
                      {"ts", s.begin_s * 1e6},
                      {"dur", (s.end_s - s.begin_s) * 1e6},
                      {"pid", s.stage},
                      {"tid", tracks[i]},
                      {"args", args}});
  }
  const json all = {{"traceEvents", events},
                    {"displayTimeUnit", "ms"},
                    {"otherData", {{"scenario", scenario}, {"step_s", step_s}, {"trainwatt", TW_VERSION}}}};
  return all.dump() + "\n";
}

}  // namespace tw::report
