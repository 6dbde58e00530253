#include "report/columns.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tw::report {
namespace {

constexpr size_t kTableWidth = 80;

// The words of a head: they end at a blank or behind an underscore.
std::vector<std::string> head_words(const std::string& head) {
  std::vector<std::string> words;
  for (size_t at = 0; at < head.size();) {
    const size_t end = std::min(head.find_first_of(" _", at), head.size() - 1) + 1;
    words.push_back(head.substr(at, end - at));
    at = end;
  }
  return words;
}

size_t without_blank(const std::string& word) {
  return word.size() - (word.back() == ' ' ? 1 : 0);
}

struct Layout {
  const std::vector<TableColumn>& columns;
  std::vector<std::vector<std::string>> heads;  // lines of each
  std::vector<size_t> widths;
  size_t gap = 2;

  size_t width(size_t from, size_t to) const {
    size_t sum = 2;
    for (size_t k = from; k < to; ++k) sum += widths[k] + (k > from ? gap : 0);
    return sum;
  }

  // Heads no wider than their column's content, where words allow it.
  void break_heads(const std::vector<size_t>& content) {
    for (size_t k = 0; k < columns.size(); ++k) {
      const auto words = head_words(columns[k].head);
      widths[k] = content[k];
      for (const std::string& word : words) widths[k] = std::max(widths[k], without_blank(word));
      heads[k] = {""};
      for (const std::string& word : words) {
        if (!heads[k].back().empty() && heads[k].back().size() + without_blank(word) > widths[k])
          heads[k].emplace_back();
        heads[k].back() += word;
      }
      for (std::string& line : heads[k]) line.erase(line.find_last_not_of(' ') + 1);
    }
  }

  void put(std::string& out, size_t from, size_t to, size_t indent, const std::vector<std::string>& cells) const {
    std::string line(indent, ' ');
    for (size_t k = from; k < std::min(to, cells.size()); ++k) {
      if (k > from) line.append(gap, ' ');
      line += columns[k].left ? fmt::format("{:<{}}", cells[k], widths[k]) : fmt::format("{:>{}}", cells[k], widths[k]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) out += line + "\n";
  }

  void put_heads(std::string& out, size_t from, size_t to, size_t indent) const {
    size_t lines = 0;
    for (size_t k = from; k < to; ++k) lines = std::max(lines, heads[k].size());
    for (size_t i = 0; i < lines; ++i) {
      std::vector<std::string> cells(to);
      for (size_t k = from; k < to; ++k)
        if (i + heads[k].size() >= lines) cells[k] = heads[k][i + heads[k].size() - lines];
      put(out, from, to, indent, cells);
    }
  }
};

}  // namespace

std::string columns_text(const std::vector<TableColumn>& columns, const std::vector<std::vector<std::string>>& rows,
                         size_t leading) {
  const size_t n = columns.size();
  std::vector<size_t> content(n, 0);
  for (const auto& row : rows)
    for (size_t k = 0; k < row.size(); ++k) content[k] = std::max(content[k], row[k].size());
  Layout layout{columns, {}, {}};
  for (size_t k = 0; k < n; ++k) {
    layout.heads.push_back({columns[k].head});
    layout.widths.push_back(std::max(content[k], columns[k].head.size()));
  }
  if (layout.width(0, n) > kTableWidth) layout.break_heads(content);
  if (layout.width(0, n) > kTableWidth) layout.gap = 1;
  const bool folded = leading > 0 && leading < n && layout.width(0, n) > kTableWidth;
  if (folded) layout.gap = 2;
  const size_t first = folded ? leading : n;
  std::string out;
  layout.put_heads(out, 0, first, 2);
  if (folded) layout.put_heads(out, first, n, 6);
  for (const auto& row : rows) {
    layout.put(out, 0, first, 2, row);
    if (folded) layout.put(out, first, n, 6, row);
  }
  return out;
}

}  // namespace tw::report
