#include "foreign/power_series.hpp"

#include <date/date.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <sstream>

#include "core/sum.hpp"
#include "foreign/lines.hpp"

namespace tw::foreign {
namespace {

using Points = std::vector<std::pair<double, double>>;

// Letters and digits, as a column's name.
std::string column_name(const std::string& place, const std::string& source, size_t index) {
  std::string name;
  for (const char c : source)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ? c : '_';
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty()) name = fmt::format("{}", index);
  return starts_with(name, place + "_") ? name : place + "_" + name;
}

// Mean power between the readings of a counter, at the later of both.
Points watts_of_counter(const Points& joules, size_t& restarts) {
  Points watts;
  for (size_t i = 1; i < joules.size(); ++i) {
    const double dt = joules[i].first - joules[i - 1].first, dj = joules[i].second - joules[i - 1].second;
    if (dt <= 0) continue;
    if (dj < 0)
      ++restarts;
    else
      watts.emplace_back(joules[i].first, dj / dt);
  }
  return watts;
}

std::string clock_text(double epoch_s) {
  const date::sys_seconds t{std::chrono::seconds(static_cast<long long>(std::floor(epoch_s)))};
  return date::format("%F %T UTC", t);
}

}  // namespace

std::optional<PowerUnit> power_unit_of(const std::string& text) {
  const std::string low = lower(text);
  std::vector<std::string> words(1);
  for (const char c : low) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  // The longest names first: "power_mw" is no watt.
  if (has("kwh")) return PowerUnit{ReadingKind::joules, 3.6e6, "kWh"};
  if (has("wh")) return PowerUnit{ReadingKind::joules, 3600, "Wh"};
  if (has("uj") || has("microjoules")) return PowerUnit{ReadingKind::joules, 1e-6, "uJ"};
  if (has("mj") || has("millijoules")) return PowerUnit{ReadingKind::joules, 1e-3, "mJ"};
  if (has("j") || has("joules") || has("joule")) return PowerUnit{ReadingKind::joules, 1, "J"};
  if (has("kw") || has("kilowatts")) return PowerUnit{ReadingKind::watts, 1e3, "kW"};
  if (has("mw") || has("milliwatts")) return PowerUnit{ReadingKind::watts, 1e-3, "mW"};
  if (has("uw") || has("microwatts")) return PowerUnit{ReadingKind::watts, 1e-6, "uW"};
  if (has("w") || has("watt") || has("watts")) return PowerUnit{ReadingKind::watts, 1, "W"};
  if (has("power") || contains(low, "power_usage")) return PowerUnit{ReadingKind::watts, 1, "W"};
  if (has("energy")) return PowerUnit{ReadingKind::joules, 1, "J"};
  return std::nullopt;
}

std::optional<double> time_of(const std::string& given) {
  std::string text = trimmed(given);
  if (const auto v = number_of(text)) {
    double s = *v;
    for (const double unit : {1e18, 1e15, 1e12})  // nano-, micro-, milliseconds since 1970
      if (std::abs(s) >= unit / 10) return s / (unit / 1e9);
    return s;
  }
  std::replace(text.begin(), text.end(), '/', '-');
  if (const size_t t = text.find('T'); t != std::string::npos) text[t] = ' ';
  double offset_s = 0;
  if (!text.empty() && (text.back() == 'Z' || text.back() == 'z')) {
    text.pop_back();
  } else if (const size_t sign = text.find_last_of("+-"); sign != std::string::npos && sign > 10) {
    const std::string zone = text.substr(sign + 1);
    const auto hours = number_of(zone.substr(0, 2)),
               minutes = number_of(zone.size() > 3 ? zone.substr(zone.size() - 2) : "0");
    if (!hours || !minutes) return std::nullopt;
    offset_s = (text[sign] == '-' ? -1 : 1) * (*hours * 3600 + *minutes * 60);
    text = trimmed(text.substr(0, sign));
  }
  std::istringstream in(text);
  date::sys_time<std::chrono::microseconds> t;
  in >> date::parse(text.size() > 10 ? "%F %T" : "%F", t);
  if (in.fail() || in.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
  return static_cast<double>(t.time_since_epoch().count()) * 1e-6 - offset_s;
}

Reading PowerSeries::finish(const Source& file, const PowerUnit& unit, const std::string& place,
                            std::vector<std::string> said, Faults& faults) {
  Reading reading;
  size_t restarts = 0;
  std::map<double, std::map<std::string, double>> rows;
  std::vector<std::string> columns;
  double first_s = 0, last_s = 0;
  bool any = false;
  std::vector<std::string> sources;
  for (const auto& entry : readings_) sources.push_back(entry.first);
  std::sort(sources.begin(), sources.end(), natural_less);
  for (const std::string& source : sources) {
    Points points = readings_[source];
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& point : points) point.second *= unit.factor;
    if (unit.kind == ReadingKind::joules) points = watts_of_counter(points, restarts);
    const std::string column = column_name(place, source, columns.size());
    columns.push_back(column);
    for (const auto& [time_s, watts] : points) {
      if (watts < 0) {
        faults.add({file.name, "", fmt::format("{} reads {:g} W", source, watts), "power of 0 W and up"});
        return reading;
      }
      rows[time_s][column] = watts;
      first_s = any ? std::min(first_s, time_s) : time_s;
      last_s = any ? std::max(last_s, time_s) : time_s;
      any = true;
    }
  }
  if (rows.size() < 2) {
    faults.add({file.name, "", fmt::format("{} readings are no series", rows.size()),
                "two readings of power, three of a counter, or more"});
    return reading;
  }
  reading.text = "time_s";
  for (const std::string& column : columns) reading.text += "," + column;
  Sum sum, energy;
  size_t count = 0;
  reading.text += "\n";
  for (const auto& [time_s, values] : rows) {
    reading.text += fmt::format("{:.6g}", std::round((time_s - first_s) * 1e6) / 1e6);
    for (const std::string& column : columns) {
      const auto found = values.find(column);
      reading.text += found == values.end() ? std::string(",") : fmt::format(",{:.6g}", found->second);
      if (found != values.end()) sum.add(found->second), ++count;
    }
    reading.text += "\n";
  }
  said.push_back(fmt::format("{} {}{} over {:g} s, {} times of reading, mean {:.4g} W each", columns.size(), place,
                             columns.size() == 1 ? "" : "s", last_s - first_s, rows.size(),
                             sum.value() / static_cast<double>(count)));
  if (first_s > 1e8) said.push_back(fmt::format("time 0 is {}", clock_text(first_s)));
  said.push_back(fmt::format("readings are {}{}", unit.name,
                             unit.kind == ReadingKind::joules ? " of a counter: mean power between two of them" : ""));
  if (restarts > 0)
    said.push_back(fmt::format("left out: {} intervals in which a counter fell (a restart or a wrap)", restarts));
  reading.said = std::move(said);
  return reading;
}

}  // namespace tw::foreign
