// Power from Prometheus: what /metrics of an exporter gives line by line (DCGM, Kepler, RAPL of the node exporter),
// with time stamps, and the json of /api/v1/query_range.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/strict_json.hpp"
#include "core/text.hpp"
#include "foreign/lines.hpp"
#include "foreign/power_series.hpp"

namespace tw::foreign {
namespace {

// A metric that is read, what its numbers are, and where it is measured. Names: dcgm-exporter's default counters,
// Kepler's metrics, the node exporter's rapl collector.
struct Metric {
  const char *beginning, *place;
  PowerUnit unit;
};
const std::vector<Metric>& metrics() {
  static const std::vector<Metric> table{
      {"DCGM_FI_DEV_POWER_USAGE", "gpu", {ReadingKind::watts, 1, "W"}},
      {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "gpu", {ReadingKind::joules, 1e-3, "mJ"}},
      {"kepler_node_platform_joules_total", "node", {ReadingKind::joules, 1, "J"}},
      {"kepler_node_platform_watts", "node", {ReadingKind::watts, 1, "W"}},
      {"kepler_node_cpu_joules_total", "node", {ReadingKind::joules, 1, "J"}},
      {"kepler_node_package_joules_total", "node", {ReadingKind::joules, 1, "J"}},
      {"node_rapl_package_joules_total", "node", {ReadingKind::joules, 1, "J"}},
      {"ipmi_dcmi_power_consumption_watts", "node", {ReadingKind::watts, 1, "W"}},
      {"node_hwmon_power_average_watt", "node", {ReadingKind::watts, 1, "W"}}};
  return table;
}
const Metric* metric_named(const std::string& name) {
  for (const Metric& m : metrics())
    if (name == m.beginning) return &m;
  return nullptr;
}

bool is_prometheus(const Source& s) {
  if (begins_object(s.text)) return contains(s.text.substr(0, 4096), "\"resultType\"");
  for (const Line& line : lines_of(s.text.substr(0, 65536))) {
    const std::string text = trimmed(line.text);
    if (starts_with(text, "# HELP ") || starts_with(text, "# TYPE ")) return true;
    if (text.empty() || text.front() == '#') continue;
    return metric_named(text.substr(0, text.find_first_of("{ "))) != nullptr;
  }
  return false;
}

using Labels = std::vector<std::pair<std::string, std::string>>;

// Host and device; labels that an exporter adds beside them (model names, UUIDs) tell nobody apart.
std::string source_of(const Labels& labels) {
  std::string source;
  for (const char* key : {"Hostname", "hostname", "node", "node_name", "exported_instance", "instance", "chip", "gpu",
                          "device", "package", "index", "zone"})
    for (const auto& [name, value] : labels)
      if (name == key && !value.empty() && !(name == "device" && starts_with(value, "nvidia")))
        source += (source.empty() ? "" : "_") + value;
  return source;
}

// Labels between braces; nothing where quotes or signs are missing.
std::optional<Labels> labels_of(const std::string& text) {
  Labels labels;
  size_t at = 0;
  while (at < text.size()) {
    const size_t equals = text.find("=\"", at);
    if (equals == std::string::npos) return trimmed(text.substr(at)).empty() ? std::optional(labels) : std::nullopt;
    std::string value;
    size_t end = equals + 2;
    while (end < text.size() && text[end] != '"') {
      if (text[end] == '\\' && end + 1 < text.size()) ++end;
      value += text[end++];
    }
    if (end >= text.size()) return std::nullopt;
    labels.emplace_back(trimmed(text.substr(at, equals - at)), value);
    at = end + 1;
    if (at < text.size() && text[at] != ',') return std::nullopt;
    ++at;
  }
  return labels;
}

struct Collected {
  PowerSeries series;
  const Metric* metric = nullptr;
};

// Two metrics of a file measure the same twice: the first is taken.
bool taken(Collected& c, const std::string& name) {
  const Metric* const m = metric_named(name);
  if (m == nullptr) return false;
  if (c.metric == nullptr) c.metric = m;
  return c.metric == m;
}

void read_lines(const Source& s, Collected& c, Faults& faults) {
  bool any_time = false;
  for (const Line& line : lines_of(s.text)) {
    const std::string text = trimmed(line.text);
    if (text.empty() || text.front() == '#') continue;
    const auto refuse = [&](const std::string& what, const std::string& allowed) {
      faults.add({s.name, line_place(line.number), what, allowed});
    };
    const size_t open = text.find('{'), close = text.rfind('}');
    const std::string name = text.substr(0, text.find_first_of("{ "));
    if (!taken(c, name)) continue;
    if ((open == std::string::npos) != (close == std::string::npos) || (open != std::string::npos && close < open)) {
      refuse("labels are not closed", "NAME{label=\"value\"} WATTS TIME");
      continue;
    }
    const auto labels = open == std::string::npos ? Labels() : labels_of(text.substr(open + 1, close - open - 1));
    if (!labels) {
      refuse("a label has no quoted value", "label=\"value\"");
      continue;
    }
    const std::string rest = trimmed(open == std::string::npos ? text.substr(name.size()) : text.substr(close + 1));
    const size_t blank = rest.find_first_of(" \t");
    const auto value = number_of(rest.substr(0, blank));
    if (!value) {
      refuse(fmt::format("\"{}\" is no number", printable(rest.substr(0, blank), 30)), "");
      continue;
    }
    const auto time_s = blank == std::string::npos ? std::nullopt : time_of(rest.substr(blank));
    if (!time_s) {
      refuse("has no time stamp", "samples over time: promtool tsdb dump, or the json of /api/v1/query_range");
      return;
    }
    any_time = true;
    c.series.add(source_of(*labels), *time_s, *value);
  }
  if (faults.empty() && !any_time) {
    std::string known;
    for (const Metric& m : metrics()) known += (known.empty() ? "" : ", ") + std::string(m.beginning);
    faults.add({s.name, "", "holds no metric of power that is known", known});
  }
}

void read_json(const Source& s, Collected& c, Faults& faults) {
  const auto json = parse_strict_json(s.text, s.name, faults);
  if (!json) return;
  const nlohmann::json::json_pointer results("/data/result");
  if (!json->contains(results) || !json->at(results).is_array())
    return faults.add({s.name, "/data/result", "is missing", "the json of /api/v1/query_range"});
  const nlohmann::json& list = json->at(results);
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string at = fmt::format("/data/result/{}", i);
    if (!list[i].is_object() || !list[i].contains("values") || !list[i]["values"].is_array())
      return faults.add({s.name, at, "has no values over time", "a matrix: /api/v1/query_range"});
    Labels labels;
    std::string name;
    const nlohmann::json metric = list[i].value("metric", nlohmann::json::object());
    for (const auto& [key, value] : metric.items()) {
      if (!value.is_string()) continue;
      (key == "__name__" ? name : labels.emplace_back(key, "").second) = value.get<std::string>();
    }
    // A query that adds or averages loses the metric's name.
    if (name.empty()) name = "kepler_node_platform_watts";
    if (!taken(c, name)) {
      if (metric_named(name) == nullptr)
        faults.add({s.name, at + "/metric/__name__", fmt::format("unknown metric \"{}\"", printable(name, 60)), ""});
      continue;
    }
    for (size_t k = 0; k < list[i]["values"].size(); ++k) {
      const auto& pair = list[i]["values"][k];
      const bool good = pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[1].is_string();
      const auto value = good ? number_of(pair[1].get<std::string>()) : std::nullopt;
      if (!value) return faults.add({s.name, fmt::format("{}/values/{}", at, k), "is no reading", "[time, \"value\"]"});
      c.series.add(source_of(labels), pair[0].get<double>(), *value);
    }
  }
}

Reading read_prometheus(const Source& s, const Options& options, Faults& faults) {
  Collected c;
  if (begins_object(s.text))
    read_json(s, c, faults);
  else
    read_lines(s, c, faults);
  if (!faults.empty()) return {};
  if (c.metric == nullptr) {
    faults.add({s.name, "", "holds no series", "samples of power over time"});
    return {};
  }
  return c.series.finish(s, c.metric->unit, options.place.empty() ? c.metric->place : options.place,
                         {fmt::format("metric {}", c.metric->beginning)}, faults);
}

}  // namespace

extern const Kind prometheus_kind{"Prometheus samples of power (DCGM, Kepler, RAPL, IPMI)", "a power series",
                                  is_prometheus, read_prometheus};

}  // namespace tw::foreign
