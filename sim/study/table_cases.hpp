// Suites whose rows stand in a table of measurements: one case a table row, not one file each.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/error.hpp"

namespace tw {

struct SuiteCase;

// One measured column.
struct TableRow {
  std::string quantity, unit, column;
  double scale = 1;
  std::optional<double> bound_pct;
  std::string rule, over;
  static void describe(Description<TableRow>& d) {
    d.object("table_row", "A column of measurements.");
    d.required("quantity", &TableRow::quantity, "a quantity of a result, such as step_s");
    d.required("unit", &TableRow::unit, "unit of the measured value, as in results");
    d.required("column", &TableRow::column, "column of the table; blank cells give no row");
    d.optional("scale", &TableRow::scale, "factor from the table's unit to the result's", above(0));
    d.optional("bound_pct", &TableRow::bound_pct, "largest error allowed, in percent; absent: reported only");
    d.optional("rule", &TableRow::rule, "olympic, for run_s over several runs: without the fastest and the slowest");
    d.optional("over", &TableRow::over, "of a speedup: template of the id of a row of the case that it is taken over");
  }
};

// Templates hold {column}, {column|value if blank}, {column/8} (whole division), {column*other} (product),
// {column:lower} and, for cells such as 3072;3456, {column:list} (a JSON list) in place of the table's cells.
struct SuiteTable {
  std::string csv, scenario, id;
  std::map<std::string, std::vector<std::string>> where;
  std::vector<std::string> set;
  std::vector<std::map<std::string, std::string>> fitted;
  bool counted = true;
  std::vector<TableRow> rows;
  static void describe(Description<SuiteTable>& d) {
    d.object("suite_table", "Cases generated from the rows of a table.");
    d.required("csv", &SuiteTable::csv, "the table");
    d.required("scenario", &SuiteTable::scenario, "scenario file that each row overrides");
    d.required("id", &SuiteTable::id, "template of a case's name, such as \"{model}-{gpus}\"");
    d.optional("where", &SuiteTable::where, "allowed values by column; other rows are left out");
    d.optional("set", &SuiteTable::set, "templates of overrides, /pointer=value");
    d.optional("fitted", &SuiteTable::fitted, "rows that constants were fitted on: values by column");
    d.optional("counted", &SuiteTable::counted, "whether its rows count in the suite's mean error (default: yes)");
    d.required("rows", &SuiteTable::rows, "measured columns");
  }
};

// Replaces the placeholders of a template by the cells of row `row`. Unknown columns are InputErrors.
class CsvTable;
std::string fill_template(const std::string& text, const CsvTable& table, size_t row);

std::vector<SuiteCase> expand_table(const SuiteTable& table);

}  // namespace tw
