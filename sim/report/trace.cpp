#include "report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/codec.hpp"
#include "core/version.hpp"

namespace tw::report {
namespace {
using json = nlohmann::ordered_json;
constexpr std::array<const char*, 3> kTracks{"device", "network", "host"};

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
    const auto id = [&] { return stream + kTracks.size() * lane; };
    const double rounding_s = 1e-12;
    while (free_from[{spans[i].stage, id()}] > spans[i].begin_s + rounding_s) ++lane;
    free_from[{spans[i].stage, id()}] = spans[i].end_s;
    track[i] = id();
    names[{spans[i].stage, id()}] = lane == 0 ? kTracks[stream] : fmt::format("{} {}", kTracks[stream], lane + 1);
  }
  return track;
}

constexpr size_t kMostTasks = 50000;  // drawn: some 10 MB
constexpr int kFirstTaskTrack = 1000;
constexpr std::array<const char*, kStreams> kTaskTracks{"kernels",        "TP exchanges",    "CP exchanges",
                                                        "EP exchanges",   "DP exchanges",    "DP exchanges, outer",
                                                        "copies to host", "copies from host"};

bool is_visit(const Span& s) {
  return s.stream == Span::Stream::device && s.flops > 0;
}

const VisitTrace* trace_of(const TraceDetail& d, const Span& s) {
  const auto& list = s.visit.backward ? d.visits.backward : d.visits.forward;
  const auto at = static_cast<size_t>(s.visit.chunk * d.stages + s.stage);
  return is_visit(s) && s.visit.part == Part::whole && at < list.size() ? &list[at] : nullptr;
}

// Kernels and exchanges inside visits. Returns which visits they are drawn for.
std::string add_tasks(json& events, const std::vector<Span>& spans, const TraceDetail& detail) {
  size_t all = 0;
  for (const Span& s : spans)
    if (const VisitTrace* t = trace_of(detail, s)) all += t->tasks.size();
  if (all == 0) return "none";
  const bool every = all <= kMostTasks;
  std::set<std::pair<int, int>> tracks;
  for (const Span& s : spans) {
    const VisitTrace* t = trace_of(detail, s);
    if (t == nullptr || t->end_s <= 0 || (!every && s.visit.micro_batch > 0)) continue;
    const double stretch = (s.end_s - s.begin_s) / t->end_s;
    for (const VisitTask& task : t->tasks) {
      const auto stream = static_cast<int>(task.task.stream);
      const bool kernel = task.task.stream == Stream::compute;
      const int track = kFirstTaskTrack + stream;
      if (tracks.emplace(s.stage, stream).second)
        events.push_back({{"name", "thread_name"},
                          {"ph", "M"},
                          {"pid", s.stage},
                          {"tid", track},
                          {"args", {{"name", kTaskTracks.at(static_cast<size_t>(stream))}}}});
      const std::string name = !task.task.name.empty() ? std::string(task.task.name)
                               : kernel                ? choice_name(task.task.activity)
                                                       : kTaskTracks.at(static_cast<size_t>(stream));
      json args = {{"micro_batch", s.visit.micro_batch}, {"chunk", s.visit.chunk}};
      if (kernel) args["activity"] = choice_name(task.task.activity);
      if (task.task.bytes > 0) args["payload_bytes"] = task.task.bytes;
      // What is still under way when the kernels are done ends with the visit.
      const double begin_s = s.begin_s + stretch * task.begin_s;
      const double end_s = std::min(s.end_s, s.begin_s + stretch * task.end_s);
      events.push_back({{"name", name},
                        {"cat", kernel ? "kernel" : "exchange"},
                        {"ph", "X"},
                        {"ts", begin_s * 1e6},
                        {"dur", std::max(0.0, end_s - begin_s) * 1e6},
                        {"pid", s.stage},
                        {"tid", track},
                        {"args", args}});
    }
  }
  return every ? "every visit" : "visits of the first micro-batch";
}

// A counter of one value a part at a moment.
template <class Names, class Values>
void add_counter(json& events, const char* name, int process, double at_s, const Names& names, const Values& values) {
  json args;
  for (size_t k = 0; k < names.size(); ++k) args[std::string(names[k])] = values[k];
  events.push_back({{"name", name}, {"ph", "C"}, {"ts", at_s * 1e6}, {"pid", process}, {"args", args}});
}

void add_process(json& events, int process, const std::string& name) {
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"args", {{"name", name}}}});
}

void add_power(json& events, const StepPower& power, int process) {
  if (power.begin_s.empty()) return;
  add_process(events, process, "power of a node");
  for (size_t i = 0; i <= power.begin_s.size(); ++i)
    add_counter(events, "W", process, i < power.begin_s.size() ? power.begin_s[i] : power.end_s, kStepPowerNames,
                power.watts[std::min(i, power.begin_s.size() - 1)]);
}
}  // namespace

std::string chrome_trace(const std::string& scenario, double step_s, std::vector<Span> spans,
                         const TraceDetail& detail) {
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
  for (const StepMemory& m : detail.memory) stages.insert(m.stage);
  for (const int stage : stages) add_process(events, stage, fmt::format("pipeline stage {}", stage));
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
                      {"cat", kTracks.at(stream)},
                      {"ph", "X"},
                      {"ts", s.begin_s * 1e6},
                      {"dur", (s.end_s - s.begin_s) * 1e6},
                      {"pid", s.stage},
                      {"tid", tracks[i]},
                      {"args", args}});
  }
  const std::string drawn = add_tasks(events, spans, detail);
  for (const StepMemory& m : detail.memory)
    for (size_t i = 0; i < m.at_s.size(); ++i)
      add_counter(events, "memory of a GPU, B", m.stage, m.at_s[i], kMemoryParts, m.bytes[i]);
  add_power(events, detail.power, stages.empty() ? 0 : *stages.rbegin() + 1);
  const json all = {
      {"traceEvents", events},
      {"displayTimeUnit", "ms"},
      {"otherData", {{"scenario", scenario}, {"step_s", step_s}, {"detail", drawn}, {"trainwatt", version()}}}};
  return all.dump() + "\n";
}

}  // namespace tw::report
