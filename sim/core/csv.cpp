#include "core/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.hpp"
#include "core/files.hpp"
#include "core/text.hpp"

namespace tw {
namespace {

// One record from `at` on; quoted fields may hold commas, doubled quotes and line ends.
std::vector<std::string> next_record(const std::string& text, size_t& at, const std::string& name, size_t record) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c != '"')
        fields.back() += c;
      else if (at + 1 < text.size() && text[at + 1] == '"')
        fields.back() += text[++at];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      ++at;
      break;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  if (quoted) throw InputError({{name, fmt::format("record {}", record), "a quote is not closed", ""}});
  return fields;
}

}  // namespace

CsvTable CsvTable::parse(const std::string& text, const std::string& name) {
  CsvTable table;
  table.name_ = name;
  size_t at = text.compare(0, 3, "\xef\xbb\xbf") == 0 ? 3 : 0;  // a byte order mark, as spreadsheets write
  size_t line = 1;
  table.columns_ = next_record(text, at, name, line);
  if (table.columns_.size() == 1 && table.columns_[0].empty())
    throw InputError({{name, "first line", "has no column names", ""}});
  while (at < text.size()) {
    auto record = next_record(text, at, name, ++line);
    if (record.size() == 1 && record[0].empty()) continue;
    if (record.size() != table.columns_.size())
      throw InputError(
          {{name, fmt::format("record {}", line),
            fmt::format("{} fields where the first line has {}", record.size(), table.columns_.size()), ""}});
    table.cells_.push_back(std::move(record));
  }
  return table;
}

CsvTable CsvTable::load(const std::string& path) {
  const auto found = find_input_file(path, "");
  if (!found) throw InputError({{path, "", "there is no such file", ""}});
  return parse(read_file(*found), *found);
}

bool CsvTable::has(const std::string& column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

size_t CsvTable::column_index(const std::string& column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end())
    throw InputError({{name_, "first line", fmt::format("no column \"{}\"", column), suggest(column, columns_)}});
  return static_cast<size_t>(found - columns_.begin());
}

const std::string& CsvTable::text(size_t row, const std::string& column) const {
  return cells_.at(row)[column_index(column)];
}

std::optional<double> CsvTable::number(size_t row, const std::string& column) const {
  const std::string& cell = text(row, column);
  if (cell.empty()) return std::nullopt;
  double v = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), v);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(v))
    refuse(row, column, fmt::format("\"{}\" is not a number", cell));
  return v;
}

double CsvTable::value(size_t row, const std::string& column) const {
  const auto v = number(row, column);
  if (!v) refuse(row, column, "is blank");
  return *v;
}

void CsvTable::join(const CsvTable& other, const std::string& on) {
  const size_t here = column_index(on), there = other.column_index(on);
  std::vector<size_t> added;
  for (size_t c = 0; c < other.columns_.size(); ++c)
    if (!has(other.columns_[c])) added.push_back(c);
  for (const size_t c : added) columns_.push_back(other.columns_[c]);
  for (auto& row : cells_) {
    const auto match = std::find_if(other.cells_.begin(), other.cells_.end(),
                                    [&](const auto& candidate) { return candidate[there] == row[here]; });
    for (const size_t c : added) row.push_back(match == other.cells_.end() ? "" : (*match)[c]);
  }
}

void CsvTable::refuse(size_t row, const std::string& column, const std::string& fault) const {
  throw InputError({{name_, fmt::format("row {}, column {}", row + 1, column), fault, ""}});
}

}  // namespace tw
