// Power as CSV: nvidia-smi and DCGM, IPMI sensors, outlets of a PDU, RAPL and Kepler counters. A column of times and
// one or more of power or energy; a column of sources tells rows of several meters apart.
#include <fmt/format.h>

#include <algorithm>

#include "core/text.hpp"
#include "foreign/lines.hpp"
#include "foreign/power_series.hpp"

namespace tw::foreign {
namespace {

struct Table {
  Line header;
  char separator = ',';
  std::vector<std::string> names;
  int time = -1;
  std::vector<int> values, sources;
};

int place_of(const std::vector<std::string>& names, const std::string& name) {
  for (size_t i = 0; i < names.size(); ++i)
    if (lower(names[i]) == lower(name)) return static_cast<int>(i);
  return -1;
}

// Columns by their usual names.
Table table_of(const std::vector<Line>& lines) {
  Table t;
  for (const Line& line : lines)
    if (const std::string text = trimmed(line.text); !text.empty() && text.front() != '#') {
      t.header = line;
      break;
    }
  t.separator = separator_of(t.header.text);
  t.names = fields_of(t.header.text, t.separator);
  for (size_t i = 0; i < t.names.size(); ++i) {
    const std::string name = lower(t.names[i]);
    const int place = static_cast<int>(i);
    if (t.time < 0 && (starts_with(name, "time") || name == "date" || name == "when" || name == "datetime" ||
                       name == "ts" || contains(name, "timestamp")))
      t.time = place;
    else if (contains(name, "limit") || contains(name, "factor") || contains(name, "apparent") ||
             contains(name, "reactive"))
      continue;  // of power, but not power
    else if (power_unit_of(t.names[i]))
      t.values.push_back(place);
    else if (name == "gpu" || name == "index" || name == "hostname" || name == "host" || name == "node" ||
             name == "outlet" || name == "instance" || name == "sensor" || name == "package" || name == "source" ||
             name == "name")
      t.sources.push_back(place);
  }
  return t;
}

bool is_power_csv(const Source& s) {
  const size_t begin = s.text.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && (s.text[begin] == '{' || s.text[begin] == '[')) return false;  // JSON on one line
  const Table t = table_of(lines_of(s.text.substr(0, 8192)));
  return t.names.size() > 1 && t.time >= 0;
}

// --map time=A,watts=B,source=C in place of the usual names.
void apply_map(const Source& s, const Options& options, Table& t, Faults& faults) {
  for (const auto& [what, column] : options.columns) {
    const int place = place_of(t.names, column);
    if (place < 0) {
      faults.add({s.name, line_place(t.header.number), fmt::format("there is no column \"{}\"", printable(column, 40)),
                  suggest(column, t.names)});
      continue;
    }
    if (what == "time") t.time = place;
    if (what == "watts") t.values = {place};
    if (what == "source") t.sources = {place};
  }
}

// "68.2 W" of nvidia-smi is 68.2; an empty cell, N/A and NaN are no reading.
struct Cell {
  bool blank = false;
  std::optional<double> value;
};
Cell cell_of(const std::string& text) {
  const std::string low = lower(trimmed(text));
  if (low.empty() || low == "n/a" || low == "[n/a]" || low == "nan" || low == "-" || low == "[not supported]")
    return {true, std::nullopt};
  return {false, number_of(low.substr(0, low.find(' ')))};
}

Reading read_power_csv(const Source& s, const Options& options, Faults& faults) {
  const auto lines = lines_of(s.text);
  Table t = table_of(lines);
  apply_map(s, options, t, faults);
  if (faults.empty() && t.values.empty())
    faults.add({s.name, line_place(t.header.number), "has no column of power or energy by its name",
                "--map watts=COLUMN, one of " + one_of(t.names)});
  if (!faults.empty()) return {};
  const auto unit_at = [&](int column) {
    return power_unit_of(t.names[static_cast<size_t>(column)]).value_or(PowerUnit{ReadingKind::watts, 1, "W"});
  };
  const PowerUnit unit = unit_at(t.values.front());
  std::vector<std::string> said;
  std::vector<int> taken;
  for (const int column : t.values)  // power and energy of one meter beside one another: the first kind
    if (unit_at(column).name == unit.name)
      taken.push_back(column);
    else
      said.push_back(
          fmt::format("left out: column \"{}\" (--map watts=COLUMN takes it)", t.names[static_cast<size_t>(column)]));
  PowerSeries series;
  for (const Line& line : lines) {
    const std::string text = trimmed(line.text);
    if (line.number <= t.header.number || text.empty() || text.front() == '#') continue;
    const auto refuse = [&](const std::string& what, const std::string& allowed) {
      faults.add({s.name, line_place(line.number), what, allowed});
    };
    if (faults.size() >= 20) break;  // a file of another kind has a fault a line
    const auto fields = fields_of(line.text, t.separator);
    if (fields.size() != t.names.size()) {
      refuse(fmt::format("{} fields where the first line has {}", fields.size(), t.names.size()), "");
      continue;
    }
    const std::string& stamp = fields[static_cast<size_t>(t.time)];
    const auto time_s = time_of(stamp);
    if (!time_s) {
      refuse(fmt::format("\"{}\" is no time", printable(stamp, 40)), "seconds, or a date such as 2024-05-17 04:41:44");
      continue;
    }
    std::string source;
    for (const int column : t.sources) source += (source.empty() ? "" : "_") + fields[static_cast<size_t>(column)];
    for (const int column : taken) {
      const std::string& field = fields[static_cast<size_t>(column)];
      const Cell cell = cell_of(field);
      if (cell.blank) continue;
      if (!cell.value) {
        refuse(fmt::format("\"{}\" is no number of {}", printable(field, 40), unit.name), "");
        continue;
      }
      const std::string name =
          taken.size() == 1 ? source : (source.empty() ? "" : source + "_") + t.names[static_cast<size_t>(column)];
      series.add(name, *time_s, *cell.value);
    }
  }
  if (!faults.empty()) return {};
  const std::string low = lower(t.header.text);
  const bool gpu = contains(low, "gpu") || contains(low, "dcgm") || contains(low, "power.draw");
  said.insert(
      said.begin(),
      fmt::format("time from column \"{}\", {} from \"{}\"{}", t.names[static_cast<size_t>(t.time)],
                  unit.kind == ReadingKind::watts ? "power" : "energy", t.names[static_cast<size_t>(taken.front())],
                  taken.size() > 1 ? fmt::format(" and {} more", taken.size() - 1) : ""));
  return series.finish(s, unit, options.place.empty() ? (gpu ? "gpu" : "node") : options.place, std::move(said),
                       faults);
}

}  // namespace

extern const Kind power_csv_kind{"CSV of power over time (nvidia-smi, DCGM, IPMI, PDU, RAPL)", "a power series",
                                 is_power_csv, read_power_csv};

}  // namespace tw::foreign
