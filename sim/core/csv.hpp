// Tables of measured data: comma separated, first line the column names, quotes as in RFC 4180.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tw {

class CsvTable {
 public:
  static CsvTable parse(const std::string& text, const std::string& name);
  static CsvTable load(const std::string& path);  // InputError when missing or ragged

  size_t rows() const { return cells_.size(); }
  bool has(const std::string& column) const;
  const std::string& text(size_t row, const std::string& column) const;       // InputError for an unknown column
  std::optional<double> number(size_t row, const std::string& column) const;  // blank -> nullopt; else InputError
  double value(size_t row, const std::string& column) const;                  // as number(), but blank is an InputError
  [[noreturn]] void refuse(size_t row, const std::string& column, const std::string& fault) const;  // InputError
  const std::vector<std::string>& columns() const { return columns_; }
  // Adds the columns of `other` that are not here: to each row the cells of its first row with the same cell in column
  // `on`, blanks where there is none.
  void join(const CsvTable& other, const std::string& on);

 private:
  size_t column_index(const std::string& column) const;
  std::string name_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> cells_;
};

}  // namespace tw
