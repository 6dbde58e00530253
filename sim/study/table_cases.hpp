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
  bool in_view = false;  // where a row is not fitted
  static void describe(Description<TableRow>& d);
};

// Columns of another table: of its row that has the same value in column `on`.
struct TableJoin {
  std::string csv, on;
  static void describe(Description<TableJoin>& d);
};

// What rows with certain cells need beside the rest.
struct TableChoice {
  std::map<std::string, std::vector<std::string>> where;
  std::vector<std::string> set;
  std::string scenario, refused;
  static void describe(Description<TableChoice>& d);
};

// Templates hold {column}, {column|value if blank}, {column/8} (whole division), {column*other} (product, also with a
// number),
// {column:lower} and, for cells such as 3072;3456, {column:list} (a JSON list) in place of the table's cells.
struct SuiteTable {
  std::string csv, scenario, id;
  std::optional<TableJoin> join;
  std::map<std::string, std::vector<std::string>> where;
  std::vector<std::string> set;
  std::vector<TableChoice> when;
  std::vector<std::map<std::string, std::string>> fitted, in_view;
  bool counted = true;
  std::string group, choice;
  std::vector<TableRow> rows;
  static void describe(Description<SuiteTable>& d);
};

// Replaces the placeholders of a template by the cells of row `row`. Unknown columns are InputErrors.
class CsvTable;
std::string fill_template(const std::string& text, const CsvTable& table, size_t row);

std::vector<SuiteCase> expand_table(const SuiteTable& table);

}  // namespace tw
