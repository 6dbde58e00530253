#include "study/table_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/codec.hpp"
#include "core/csv.hpp"
#include "study/suite.hpp"

namespace tw {
namespace {

bool blank(const std::string& cell) {
  return cell.empty() || cell == "NA" || cell == "n/a";
}

std::string cell_of(const std::string& inside, const CsvTable& table, size_t row) {
  if (const auto colon = inside.rfind(":lower"); colon != std::string::npos) {
    std::string text = cell_of(inside.substr(0, colon), table, row);
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  }
  if (const auto colon = inside.rfind(":list"); colon != std::string::npos) {
    std::string text = cell_of(inside.substr(0, colon), table, row);
    std::replace(text.begin(), text.end(), ';', ',');
    return "[" + text + "]";
  }
  if (inside.find('*') != std::string::npos) {
    double product = 1;
    for (size_t begin = 0; begin <= inside.size();) {
      const auto end = std::min(inside.find('*', begin), inside.size());
      const std::string factor = inside.substr(begin, end - begin);
      const bool number = !factor.empty() && factor.find_first_not_of("0123456789.") == std::string::npos;
      product *= number ? std::strtod(factor.c_str(), nullptr) : table.value(row, factor);
      begin = end + 1;
    }
    return fmt::format("{:.0f}", product);
  }
  const auto bar = inside.find('|');
  const auto slash = inside.find('/');
  const std::string column = inside.substr(0, std::min(bar, slash));
  const std::string cell = table.text(row, column);
  if (bar != std::string::npos && blank(cell)) return inside.substr(bar + 1);
  if (slash == std::string::npos) return cell;
  const double divisor = std::strtod(inside.c_str() + slash + 1, nullptr);
  const auto value = table.number(row, column);
  if (divisor <= 0 || !value) return cell;
  return fmt::format("{:.0f}", *value / divisor);
}

bool matches(const std::map<std::string, std::string>& wanted, const CsvTable& table, size_t row) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& w) { return table.text(row, w.first) == w.second; });
}

bool among(const std::map<std::string, std::vector<std::string>>& allowed, const CsvTable& table, size_t row) {
  return std::all_of(allowed.begin(), allowed.end(), [&](const auto& w) {
    return std::find(w.second.begin(), w.second.end(), table.text(row, w.first)) != w.second.end();
  });
}

RowKind kind_of(const SuiteTable& t, const TableRow& column, const CsvTable& table, size_t row) {
  const auto holds = [&](const auto& wanted) { return matches(wanted, table, row); };
  if (std::any_of(t.fitted.begin(), t.fitted.end(), holds)) return RowKind::fitted;
  if (column.in_view || std::any_of(t.in_view.begin(), t.in_view.end(), holds)) return RowKind::in_view;
  return RowKind::predicted;
}

}  // namespace

std::string fill_template(const std::string& text, const CsvTable& table, size_t row) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto open = text.find('{', at);
    const auto close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) return out + text.substr(at);
    if (text.find('"', open) < close) {  // a JSON object, not a placeholder
      out += text.substr(at, open + 1 - at);
      at = open + 1;
      continue;
    }
    out += text.substr(at, open - at) + cell_of(text.substr(open + 1, close - open - 1), table, row);
    at = close + 1;
  }
  return out;
}

std::vector<SuiteCase> expand_table(const SuiteTable& t) {
  CsvTable table = CsvTable::load(t.csv);
  if (t.join) table.join(CsvTable::load(t.join->csv), t.join->on);
  std::vector<SuiteCase> cases;
  for (size_t row = 0; row < table.rows(); ++row) {
    if (!among(t.where, table, row)) continue;
    SuiteCase c;
    c.scenario = t.scenario;
    for (const std::string& s : t.set) c.set.push_back(fill_template(s, table, row));
    for (const TableChoice& choice : t.when) {
      if (!among(choice.where, table, row)) continue;
      if (!choice.scenario.empty()) c.scenario = fill_template(choice.scenario, table, row);
      if (c.refused.empty()) c.refused = choice.refused;
      for (const std::string& s : choice.set) c.set.push_back(fill_template(s, table, row));
    }
    for (const TableRow& r : t.rows) {
      const auto measured = table.number(row, r.column);
      if (!measured) continue;
      SuiteRow out;
      out.id = fill_template(t.id, table, row) + "/" + r.quantity;
      out.quantity = r.quantity;
      out.unit = r.unit;
      out.measured = *measured * r.scale;
      out.kind = kind_of(t, r, table, row);
      out.bound_pct = r.bound_pct;
      out.counted = t.counted;
      out.rule = r.rule;
      if (!t.group.empty()) out.group = fill_template(t.group, table, row);
      if (!t.choice.empty()) out.choice = fill_template(t.choice, table, row);
      if (!r.over.empty()) out.over = fill_template(r.over, table, row);
      out.source = fmt::format("{}, row {}, {}", t.csv, row + 1, r.column);
      c.rows.push_back(std::move(out));
    }
    if (!c.rows.empty()) cases.push_back(std::move(c));
  }
  return cases;
}

void TableRow::describe(Description<TableRow>& d) {
  d.object("table_row", "A column of measurements.");
  d.required("quantity", &TableRow::quantity, "a quantity of a result, such as step_s");
  d.required("unit", &TableRow::unit, "unit of the measured value, as in results");
  d.required("column", &TableRow::column, "column of the table; blank cells give no row");
  d.optional("scale", &TableRow::scale, "factor from the table's unit to the result's", above(0));
  d.optional("bound_pct", &TableRow::bound_pct, "largest error allowed, in percent; absent: reported only");
  d.optional("rule", &TableRow::rule, "olympic, for run_s over several runs: without the fastest and the slowest");
  d.optional("over", &TableRow::over, "of a speedup: template of the id of a row of the case that it is taken over");
  d.optional("in_view", &TableRow::in_view, "its figures were in view while a form or constant was chosen");
}

void TableJoin::describe(Description<TableJoin>& d) {
  d.object("table_join", "Columns of another table.");
  d.required("csv", &TableJoin::csv, "the other table");
  d.required("on", &TableJoin::on, "column of both whose cells say which rows belong together");
}

void TableChoice::describe(Description<TableChoice>& d) {
  d.object("table_choice", "What rows with certain cells need beside the rest.");
  d.required("where", &TableChoice::where, "cells by column");
  d.optional("set", &TableChoice::set, "templates of overrides, /pointer=value, after those of the table");
  d.optional("scenario", &TableChoice::scenario, "template of the scenario file, in place of the table's");
  d.optional("refused", &TableChoice::refused, "why these rows cannot be simulated: they are listed, nothing runs");
}

void SuiteTable::describe(Description<SuiteTable>& d) {
  d.object("suite_table", "Cases generated from the rows of a table.");
  d.required("csv", &SuiteTable::csv, "the table");
  d.required("scenario", &SuiteTable::scenario, "scenario file that each row overrides");
  d.required("id", &SuiteTable::id, "template of a case's name, such as \"{model}-{gpus}\"");
  d.optional("join", &SuiteTable::join, "another table whose columns are wanted too");
  d.optional("where", &SuiteTable::where, "allowed values by column; other rows are left out");
  d.optional("set", &SuiteTable::set, "templates of overrides, /pointer=value");
  d.optional("when", &SuiteTable::when, "what rows with certain cells need beside the rest");
  d.optional("fitted", &SuiteTable::fitted, "rows that constants were fitted on: values by column");
  d.optional("in_view", &SuiteTable::in_view, "rows in view while a form or constant was chosen: values by column");
  d.optional("group", &SuiteTable::group, "template: rows of one group are reported apart");
  d.optional("choice", &SuiteTable::choice, "template: rows of one choice are plans to choose from");
  d.optional("counted", &SuiteTable::counted, "whether its rows count in the suite's mean error (default: yes)");
  d.required("rows", &SuiteTable::rows, "measured columns");
}

}  // namespace tw
