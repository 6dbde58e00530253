// Hourly series of carbon intensity or price, read from CSV with times that know their zone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "facility/site.hpp"

namespace tw {

// Seconds since 1970 UTC of "2024-05-16T08:00+08:00" (seconds and "Z" allowed); without an offset in the text that of
// `default_offset` is taken. Absent when the text is no such time.
struct ZonedTime {
  int64_t utc_s = 0;
  std::optional<int> offset_s;  // as written
};
std::optional<ZonedTime> parse_time(const std::string& text, std::optional<int> default_offset_s = std::nullopt);
std::optional<int> parse_utc_offset(const std::string& text);  // "+08:00", "Z" -> seconds
std::string format_time(int64_t utc_s, int offset_s = 0);      // "2024-05-16T08:00+08:00"

class HourlySeries {
 public:
  int64_t begin_utc_s = 0;
  std::vector<double> values;        // one an hour
  std::map<int64_t, int> offsets;    // from UTC as the file writes them, from an instant on: clock changes
  size_t filled = 0, gaps = 0;       // hours that the file does not have, and in how many gaps
  std::vector<std::string> remarks;  // what was filled or left out

  int64_t end_utc_s() const { return begin_utc_s + 3600 * static_cast<int64_t>(values.size()); }
  bool covers(int64_t from_utc_s, double seconds) const;
  int offset_at(int64_t utc_s) const;
  std::string text(int64_t utc_s) const { return format_time(utc_s, offset_at(utc_s)); }
  double at(int64_t utc_s) const { return values[static_cast<size_t>((utc_s - begin_utc_s) / 3600)]; }
};

// Reads column `column`. Times are the instants that they name, so offsets may change from row to row. Faults name file
// and line, one line for a gap and one for each kind of bad row: no zone, no full hour, hours twice or out of order,
// numbers that cannot be (prices may be negative). Gaps and hours twice are remarks instead where `site.series_gaps`
// says how to fill. Empty when there is any fault.
std::optional<HourlySeries> read_hourly(const std::string& csv_text, const std::string& file, const std::string& column,
                                        const Site& site, Faults& faults);

struct SiteSeries {
  std::optional<HourlySeries> location_kg_per_kwh, market_kg_per_kwh, price_per_kwh;
  std::string currency;  // of the prices: the column of the file says it, eur_per_kwh
};

// Loads the files that the site names, found beside `named_in`.
SiteSeries load_site_series(const Site& site, const std::string& named_in, Faults& faults);

}  // namespace tw
