#include "facility/hourly_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/csv.hpp"
#include "core/files.hpp"

namespace tw {
namespace {

// Reads `digits` digits at `at`; -1 when they are not there.
int number_at(const std::string& text, size_t at, size_t digits) {
  if (at + digits > text.size()) return -1;
  int value = 0;
  for (size_t i = at; i < at + digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

bool char_at(const std::string& text, size_t at, char c) {
  return at < text.size() && text[at] == c;
}

}  // namespace

std::optional<int> parse_utc_offset(const std::string& text) {
  if (text == "Z" || text == "z") return 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const int hours = number_at(text, 1, 2), minutes = number_at(text, 4, 2);
  if (hours < 0 || hours > 14 || minutes < 0 || minutes > 59) return std::nullopt;
  return (text[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

std::optional<ZonedTime> parse_time(const std::string& text, std::optional<int> default_offset_s) {
  const int year = number_at(text, 0, 4), month = number_at(text, 5, 2), day = number_at(text, 8, 2);
  const int hour = number_at(text, 11, 2), minute = number_at(text, 14, 2);
  if (year < 1970 || month < 1 || day < 1 || hour < 0 || hour > 23 || minute < 0 || minute > 59) return std::nullopt;
  if (!char_at(text, 4, '-') || !char_at(text, 7, '-') || !char_at(text, 13, ':')) return std::nullopt;
  if (!char_at(text, 10, 'T') && !char_at(text, 10, ' ')) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return std::nullopt;
  size_t at = 16;
  int second = 0;
  if (char_at(text, at, ':')) {
    second = number_at(text, at + 1, 2);
    if (second < 0 || second > 59) return std::nullopt;
    at += 3;
  }
  ZonedTime time;
  if (at < text.size()) {
    time.offset_s = parse_utc_offset(text.substr(at));
    if (!time.offset_s) return std::nullopt;
  } else if (!default_offset_s) {
    return std::nullopt;
  }
  const auto days = std::chrono::sys_days{date}.time_since_epoch().count();
  time.utc_s = static_cast<int64_t>(days) * 86400 + hour * 3600 + minute * 60 + second -
               time.offset_s.value_or(default_offset_s.value_or(0));
  return time;
}

std::string format_time(int64_t utc_s, int offset_s) {
  const int64_t local_s = utc_s + offset_s;
  const int64_t days = (local_s >= 0 ? local_s : local_s - 86399) / 86400;
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{days}}};
  const int64_t in_day = local_s - days * 86400;
  const std::string zone = offset_s == 0 ? "Z"
                                         : fmt::format("{}{:02}:{:02}", offset_s < 0 ? '-' : '+',
                                                       std::abs(offset_s) / 3600, std::abs(offset_s) / 60 % 60);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}{}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), in_day / 3600,
                     in_day / 60 % 60, zone);
}

bool HourlySeries::covers(int64_t from_utc_s, double seconds) const {
  return from_utc_s >= begin_utc_s && static_cast<double>(from_utc_s) + seconds <= static_cast<double>(end_utc_s());
}

std::optional<HourlySeries> read_hourly(const std::string& csv_text, const std::string& file, const std::string& column,
                                        const Site& site, Faults& faults) {
  const size_t faults_before = faults.size();
  const auto fault = [&](size_t row, std::string what, std::string allowed) {
    faults.add({file, fmt::format("line {}", row + 2), std::move(what), std::move(allowed)});
  };
  CsvTable table;
  try {
    table = CsvTable::parse(csv_text, file);
    if (table.rows() > 0) table.value(0, column);
  } catch (const InputError& error) {
    for (const Fault& f : error.faults()) faults.add(f);
    return std::nullopt;
  }
  if (!table.has("time")) {
    faults.add({file, "line 1", "no column \"time\"", "columns: time and " + column});
    return std::nullopt;
  }
  const std::optional<int> zone = parse_utc_offset(site.utc_offset);
  const bool fill = site.series_gaps != SeriesGaps::refuse;
  HourlySeries series;
  std::optional<int> last_offset;
  for (size_t row = 0; row < table.rows(); ++row) {
    const std::string& text = table.text(row, "time");
    const auto time = parse_time(text, zone);
    if (!time) {
      fault(row, fmt::format("\"{}\" is no time with a zone", text),
            "such as 2024-05-16T08:00+08:00; or name the site's utc_offset");
      continue;
    }
    std::optional<double> value;
    try {
      value = table.number(row, column);
    } catch (const InputError& error) {
      for (const Fault& f : error.faults()) faults.add(f);
      continue;
    }
    if (value && !(*value >= 0 && std::isfinite(*value))) {
      fault(row, fmt::format("{} = {}", column, *value), "it must be 0 or more");
      continue;
    }
    if (!value && !fill) {
      fault(row, fmt::format("{} is blank", column), "set series_gaps to hold or interpolate to fill it");
      continue;
    }
    if (time->utc_s % 3600 != 0 && series.values.empty())
      fault(row, fmt::format("\"{}\" is no full hour", text), "one row an hour, at full hours UTC");
    if (series.values.empty()) {
      series.begin_utc_s = time->utc_s;
      series.offset_s = time->offset_s.value_or(zone.value_or(0));
      last_offset = time->offset_s;
      if (value) series.values.push_back(*value);
      continue;
    }
    if (time->offset_s != last_offset && !fill)
      fault(row, "the offset from UTC changes: a clock change",
            "use one offset, or set series_gaps to hold or interpolate");
    last_offset = time->offset_s;
    const int64_t expected_s = series.end_utc_s();
    if (time->utc_s < expected_s) {
      // An hour twice: where local times carry no offset, the hour that a clock change repeats.
      if (!fill) fault(row, fmt::format("\"{}\" stands twice or out of order", text), "one row an hour, in order");
      continue;
    }
    if ((time->utc_s - expected_s) % 3600 != 0) {
      fault(row, fmt::format("\"{}\" is no full hour after the row before", text), "one row an hour");
      continue;
    }
    const auto missing = static_cast<size_t>((time->utc_s - expected_s) / 3600);
    if (missing > 0 && !fill) {
      fault(row, fmt::format("{} hour{} missing before \"{}\"", missing, missing == 1 ? " is" : "s are", text),
            "set series_gaps to hold or interpolate to fill them");
      continue;
    }
    if (!value) continue;  // filled when the next value comes
    const double last = series.values.back();
    for (size_t k = 1; k <= missing; ++k)
      series.values.push_back(site.series_gaps == SeriesGaps::hold
                                  ? last
                                  : last + (*value - last) * static_cast<double>(k) / static_cast<double>(missing + 1));
    series.values.push_back(*value);
  }
  if (faults.size() > faults_before) return std::nullopt;
  if (series.values.empty()) {
    faults.add({file, "", "no hours", "one row an hour"});
    return std::nullopt;
  }
  return series;
}

SiteSeries load_site_series(const Site& site, const std::string& named_in, Faults& faults) {
  SiteSeries series;
  const auto text_of = [&](const std::string& name,
                           const char* key) -> std::optional<std::pair<std::string, std::string>> {
    if (name.empty()) return std::nullopt;
    const auto path = find_input_file(name, named_in);
    if (!path) {
      faults.add({named_in, std::string("/") + key, fmt::format("no file \"{}\"", name), suggest_file(name)});
      return std::nullopt;
    }
    return std::pair(*path, read_file(*path));
  };
  if (!site.utc_offset.empty() && !parse_utc_offset(site.utc_offset))
    faults.add({named_in, "/utc_offset", fmt::format("\"{}\" is no offset from UTC", site.utc_offset),
                "such as \"+08:00\" or \"Z\""});
  if (const auto carbon = text_of(site.carbon_series, "carbon_series")) {
    series.location_kg_per_kwh = read_hourly(carbon->second, carbon->first, "location_kg_per_kwh", site, faults);
    if (carbon->second.substr(0, carbon->second.find('\n')).find("market_kg_per_kwh") != std::string::npos)
      series.market_kg_per_kwh = read_hourly(carbon->second, carbon->first, "market_kg_per_kwh", site, faults);
  }
  if (const auto price = text_of(site.price_series, "price_series"))
    series.usd_per_kwh = read_hourly(price->second, price->first, "usd_per_kwh", site, faults);
  return series;
}

}  // namespace tw
