#include "facility/hourly_series.hpp"

#include <date/date.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <map>
#include <sstream>

#include "core/csv.hpp"
#include "core/currency.hpp"
#include "core/files.hpp"

namespace tw {

std::optional<int> parse_utc_offset(const std::string& text) {
  const auto time = text.empty() ? std::nullopt : parse_time("2000-01-01T00:00" + text);
  return time ? time->offset_s : std::nullopt;
}

std::optional<ZonedTime> parse_time(const std::string& text, std::optional<int> default_offset_s) {
  std::string plain = text;
  if (plain.size() > 10 && plain[10] == ' ') plain[10] = 'T';
  if (!plain.empty() && (plain.back() == 'Z' || plain.back() == 'z')) plain.replace(plain.size() - 1, 1, "+00:00");
  for (const char* form : {"%FT%H:%M:%S%Ez", "%FT%H:%M%Ez", "%FT%H:%M:%S", "%FT%H:%M"}) {
    date::local_seconds local;
    std::string zone;
    std::chrono::minutes offset{0};
    std::istringstream in(plain);
    date::from_stream(in, form, local, &zone, &offset);
    if (in.fail() || in.peek() != std::istringstream::traits_type::eof()) continue;
    const bool zoned = std::string(form).find("%Ez") != std::string::npos;
    if (!zoned && !default_offset_s) return std::nullopt;
    const int64_t local_s = local.time_since_epoch().count();
    const auto offset_s = static_cast<int>(std::chrono::seconds(offset).count());
    if (local_s < 0 || std::abs(offset_s) > 14 * 3600) return std::nullopt;
    ZonedTime time;
    if (zoned) time.offset_s = offset_s;
    time.utc_s = local_s - time.offset_s.value_or(default_offset_s.value_or(0));
    return time;
  }
  return std::nullopt;
}

std::string format_time(int64_t utc_s, int offset_s) {
  const date::local_seconds local{std::chrono::seconds(utc_s + offset_s)};
  const std::string zone = offset_s == 0 ? "Z"
                                         : fmt::format("{}{:02}:{:02}", offset_s < 0 ? '-' : '+',
                                                       std::abs(offset_s) / 3600, std::abs(offset_s) / 60 % 60);
  return date::format("%FT%H:%M", local) + zone;
}

bool HourlySeries::covers(int64_t from_utc_s, double seconds) const {
  return from_utc_s >= begin_utc_s && static_cast<double>(from_utc_s) + seconds <= static_cast<double>(end_utc_s());
}

int HourlySeries::offset_at(int64_t utc_s) const {
  const auto next = offsets.upper_bound(utc_s);
  return next == offsets.begin() ? (offsets.empty() ? 0 : offsets.begin()->second) : std::prev(next)->second;
}

namespace {

// Faults of one kind are one line: the first, and how many more there are.
class RowFaults {
 public:
  explicit RowFaults(std::string file) : file_(std::move(file)) {}
  void add(const std::string& kind, size_t row, std::string what, std::string allowed) {
    const auto [at, fresh] = place_.try_emplace(kind, list_.size());
    if (fresh)
      list_.push_back({{file_, fmt::format("line {}", row + 2), std::move(what), std::move(allowed)}, 0});
    else
      ++list_[at->second].second;
  }
  // True when there were none.
  bool move_to(Faults& faults) {
    for (auto& [fault, more] : list_) {
      if (more > 0) fault.what += fmt::format(" (and {} more row{} like it)", more, more == 1 ? "" : "s");
      faults.add(fault);
    }
    return list_.empty();
  }

 private:
  std::string file_;
  std::map<std::string, size_t> place_;
  std::vector<std::pair<Fault, size_t>> list_;
};

struct Row {
  size_t number = 0;
  std::string text;
  int64_t utc_s = 0;
  int offset_s = 0;
  std::optional<double> value;  // blank: a missing hour
};

std::vector<Row> rows_of(const CsvTable& table, const std::string& column, const Site& site, RowFaults& faults) {
  const std::optional<int> zone = parse_utc_offset(site.utc_offset);
  const bool price = column != "location_kg_per_kwh" && column != "market_kg_per_kwh";  // may be negative
  std::vector<Row> rows;
  for (size_t i = 0; i < table.rows(); ++i) {
    Row row{i, table.text(i, "time"), 0, 0, std::nullopt};
    const auto time = parse_time(row.text, zone);
    if (!time) {
      faults.add("zone", i, fmt::format("\"{}\" is no time with a zone", row.text),
                 "such as 2024-05-16T08:00+08:00; or name the site's utc_offset");
      continue;
    }
    row.utc_s = time->utc_s;
    row.offset_s = time->offset_s.value_or(zone.value_or(0));
    if (row.utc_s % 3600 != 0)
      faults.add("hour", i, fmt::format("\"{}\" is no full hour", row.text), "one row an hour, at full hours UTC");
    try {
      row.value = table.number(i, column);
    } catch (const InputError& error) {
      faults.add("number", i, error.faults().front().what, error.faults().front().allowed);
      continue;
    }
    if (row.value && !(std::isfinite(*row.value) && (price || *row.value >= 0)))
      faults.add("value", i, fmt::format("{} = {}", column, *row.value), price ? "a number" : "it must be 0 or more");
    rows.push_back(std::move(row));
  }
  return rows;
}

// The column of a head such as "time,eur_per_kwh". By hand, since <regex> costs seconds to compile.
std::string price_column(const std::string& head) {
  const std::string end = "_per_kwh";
  const auto small = [](unsigned char c) { return std::islower(c) != 0; };
  const auto in_word = [&](size_t i) {
    return i < head.size() && (std::isalnum(static_cast<unsigned char>(head[i])) != 0 || head[i] == '_');
  };
  for (size_t at = head.find(end, 3); at != std::string::npos; at = head.find(end, at + 1)) {
    const auto begin = head.begin() + static_cast<std::ptrdiff_t>(at) - 3;
    if (std::all_of(begin, begin + 3, small) && !in_word(at - 4) && !in_word(at + end.size()))
      return head.substr(at - 3, 3 + end.size());
  }
  return "usd_per_kwh";
}

std::string hours(size_t n) {
  return fmt::format("{} hour{}", n, n == 1 ? "" : "s");
}

}  // namespace

std::optional<HourlySeries> read_hourly(const std::string& csv_text, const std::string& file, const std::string& column,
                                        const Site& site, Faults& faults) {
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
  RowFaults found(file);
  const bool fill = site.series_gaps != SeriesGaps::refuse;
  HourlySeries series;
  size_t repeated = 0;
  int64_t last_utc_s = 0;
  const std::vector<Row> rows = rows_of(table, column, site, found);
  for (const Row& row : rows) {
    const bool first = &row == &rows.front();
    if (!first && row.utc_s <= last_utc_s) {  // in times without offsets, the hour that a clock change repeats
      if (!fill)
        found.add("twice", row.number, fmt::format("\"{}\" stands twice or out of order", row.text),
                  "one row an hour, in order; at a clock change write the offset from UTC in each row");
      ++repeated;
      continue;
    }
    last_utc_s = row.utc_s;
    if (series.offsets.empty() || series.offsets.rbegin()->second != row.offset_s)
      series.offsets[row.utc_s] = row.offset_s;
    if (!row.value) continue;
    if (series.values.empty()) series.begin_utc_s = row.utc_s;
    const auto missing = static_cast<size_t>(std::max<int64_t>(0, row.utc_s - series.end_utc_s()) / 3600);
    if (missing > 100 * rows.size() + 1000) {
      found.add("far", row.number, fmt::format("{} are missing before \"{}\"", hours(missing), row.text), "a year");
      break;
    }
    if (missing > 0 && !fill)
      found.add(fmt::format("gap {}", row.number), row.number,
                fmt::format("{} {} missing before \"{}\"", hours(missing), missing == 1 ? "is" : "are", row.text),
                "set series_gaps to hold or interpolate to fill them");
    const double last = series.values.empty() ? *row.value : series.values.back();
    for (size_t k = 1; k <= missing; ++k)
      series.values.push_back(site.series_gaps == SeriesGaps::interpolate
                                  ? last +
                                        (*row.value - last) * static_cast<double>(k) / static_cast<double>(missing + 1)
                                  : last);
    series.values.push_back(*row.value);
    series.filled += missing;
    series.gaps += missing > 0 ? 1 : 0;
  }
  const bool good = found.move_to(faults);
  if (series.values.empty() && good) faults.add({file, "", "no hours", "one row an hour"});
  if (!good || series.values.empty()) return std::nullopt;
  if (series.gaps > 0)
    series.remarks.push_back(fmt::format("{}: {} of {} in {} gap{} {} filled ({})", file, hours(series.filled),
                                         hours(series.values.size()), series.gaps, series.gaps == 1 ? "" : "s",
                                         series.filled == 1 ? "is" : "are", choice_name(site.series_gaps)));
  if (repeated > 0)
    series.remarks.push_back(fmt::format("{}: {} that stand{} twice {} left out", file, hours(repeated),
                                         repeated == 1 ? "s" : "", repeated == 1 ? "is" : "are"));
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
  if (const auto price = text_of(site.price_series, "price_series")) {
    const std::string head = price->second.substr(0, price->second.find('\n'));
    const std::string column = price_column(head);
    series.price_per_kwh = read_hourly(price->second, price->first, column, site, faults);
    series.currency = column.substr(0, 3);
    for (char& c : series.currency) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (!is_currency(series.currency))
      faults.add({price->first, "line 1", fmt::format("\"{}\" is no ISO 4217 currency", series.currency), "usd, eur"});
    if (site.price && site.price->currency != series.currency)
      faults.add({named_in, "/price_series",
                  fmt::format("prices in {}, /price in {}", series.currency, site.price->currency), "one currency"});
  }
  return series;
}

}  // namespace tw
