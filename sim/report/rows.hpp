// Rows of a command's JSON as a plain table: for spreadsheets, databases, data frames.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tw::report {

// Columns are keys, those of nested objects joined by points ("step.time_s"), elements of short lists by their place.
struct Rows {
  struct Cell {
    std::string text;  // empty: null
    bool number = false;
  };
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> cells;  // as many as columns each
};

// An array of objects is a row each; of an object the list that holds its rows (plans, suites' rows, outputs, runs
// ...), else it is one row itself.
Rows rows_of_json(const std::string& json_text);

std::string rows_csv(const Rows& rows);

// One table "rows" in a new file, which takes the place of an old one when complete. Numbers are REAL, others TEXT.
void write_rows_sqlite(const std::string& path, const Rows& rows);

}  // namespace tw::report
