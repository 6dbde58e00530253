#include "report/accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/codec.hpp"
#include "report/figures.hpp"

namespace tw::report {
namespace {

std::string cell(const RowOutcome& r) {
  if (!r.error_pct) return "-";
  // One decimal: the table is for reading, and a last bit must not change it.
  std::string text = std::abs(*r.error_pct) < 0.05 ? "0.0" : fmt::format("{:+.1f}", *r.error_pct);
  if (r.row.kind == RowKind::fitted) text += " f";
  if (r.row.kind == RowKind::in_view) text += " v";
  if (r.row.bound_pct)
    text += fmt::format(" ({})", *r.row.bound_pct == 0 ? "exact" : fmt::format("{:g}", *r.row.bound_pct));
  if (!r.met().value_or(true)) text += " !";
  return text;
}

}  // namespace

std::string accuracy_markdown(const std::vector<SuiteOutcome>& suites) {
  std::string out;
  for (const SuiteOutcome& suite : suites) {
    std::vector<std::string> columns, rows;
    std::map<std::pair<std::string, std::string>, std::string> cells;
    for (const RowOutcome& r : suite.rows) {
      const auto slash = std::min(r.row.id.find('/'), r.row.id.size());
      const std::string column = r.row.id.substr(0, slash);
      const std::string row = slash < r.row.id.size() ? r.row.id.substr(slash + 1) : r.row.quantity;
      add_once(columns, column);
      add_once(rows, row);
      cells[{row, column}] = cell(r);
    }
    out += fmt::format("\n| {} |", suite.name);
    for (const std::string& c : columns) out += fmt::format(" {} |", c);
    out += "\n|---|";
    for (size_t i = 0; i < columns.size(); ++i) out += "---|";
    out += "\n";
    for (const std::string& row : rows) {
      out += fmt::format("| {} |", row);
      for (const std::string& c : columns) out += fmt::format(" {} |", cells[{row, c}]);
      out += "\n";
    }
    std::string means;
    for (const RowKind kind : {RowKind::fitted, RowKind::in_view, RowKind::predicted})
      if (const Maybe mape = suite.mape_pct(kind))
        means += fmt::format("{}{} rows {:.1f} %", means.empty() ? "" : ", ",
                             kind == RowKind::in_view ? "in view" : choice_name(kind), *mape);
    if (!means.empty()) out += fmt::format("\nMean absolute error: {}.\n", means);
  }
  return out + "\n";
}

std::string coverage_table(const std::vector<Coverage>& coverage) {
  std::string out =
      fmt::format("Intervals of {:.0f} %, each suite left out in turn\n  {:<20} {:>6} {:>8} {:>10} {:>8}\n",
                  100 * kIntervalLevel, "suite", "rows", "inside", "width", "unlike");
  size_t rows = 0, inside = 0, suites = 0;
  double shares = 0;
  for (const Coverage& c : coverage) {
    const double share = c.rows == 0 ? 0 : 100.0 * static_cast<double>(c.inside) / static_cast<double>(c.rows);
    out += fmt::format("  {:<20} {:>6} {:>8} {:>10} {:>8}\n", c.suite, c.rows,
                       c.rows == 0 ? "-" : fmt::format("{:.0f} %", share),
                       c.rows == 0 ? "-" : fmt::format("+-{:.1f} %", c.width_pct), c.unlike);
    if (c.rows == 0) continue;
    rows += c.rows, inside += c.inside, ++suites, shares += share;
  }
  // Rows of a suite share its cluster and release and fall together, so that few suites say more than many rows.
  if (rows > 0)
    out += fmt::format("  Inside: {:.0f} % of all rows, {:.0f} % in the mean of the suites.\n",
                       100.0 * static_cast<double>(inside) / static_cast<double>(rows),
                       shares / static_cast<double>(suites));
  return out + "\n";
}

std::string known_gaps_text(const KnownGaps& known) {
  std::string out =
      "// What misses its bound, with the error reached. Tests assert no worse; entries may only shrink:\n"
      "// trainwatt validate --gaps reference/known_gaps.json\n{\n";
  out += fmt::format("  \"note\": {},\n  \"gaps\": {{", detail::json_text(known.note));
  const char* separator = "";
  for (const auto& [row, error] : known.gaps) {
    out += fmt::format("{}\n    {}: {:.2f}", separator, detail::json_text(row), error);
    separator = ",";
  }
  return out + "\n  }\n}\n";
}

}  // namespace tw::report
