#include "foreign/lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace tw::foreign {
namespace {

constexpr size_t kMostNames = 1000000;

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// Names of one expression, whose first bracket (if any) is opened.
bool expand(std::string_view expression, std::vector<std::string>& names) {
  const size_t open = expression.find('[');
  if (open == std::string_view::npos) {
    if (expression.empty() || expression.find(']') != std::string_view::npos) return false;
    names.emplace_back(expression);
    return names.size() <= kMostNames;
  }
  const size_t close = expression.find(']', open);
  if (close == std::string_view::npos) return false;
  const std::string_view before = expression.substr(0, open), after = expression.substr(close + 1);
  std::string_view ranges = expression.substr(open + 1, close - open - 1);
  while (true) {
    const size_t comma = ranges.find(',');
    const std::string_view range = ranges.substr(0, comma);
    const size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash),
                           high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    if (low.empty() || high.empty() || low.size() > 9 || high.size() > 9 ||
        !std::all_of(low.begin(), low.end(), digit) || !std::all_of(high.begin(), high.end(), digit))
      return false;
    const long from = std::stol(std::string(low)), to = std::stol(std::string(high));
    if (to < from) return false;
    for (long i = from; i <= to; ++i) {
      const std::string one = fmt::format("{}{:0{}}{}", before, i, low.size(), after);
      if (names.size() >= kMostNames || !expand(one, names)) return false;
    }
    if (comma == std::string_view::npos) return true;
    ranges.remove_prefix(comma + 1);
  }
}

}  // namespace

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  size_t at = text.compare(0, 3, "\xef\xbb\xbf") == 0 ? 3 : 0;  // a byte order mark, as spreadsheets write
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    size_t length = end - at;
    if (length > 0 && text[end - 1] == '\r') --length;
    lines.push_back({lines.size() + 1, text.substr(at, length)});
    at = end + 1;
  }
  return lines;
}

std::string line_place(size_t number) {
  return fmt::format("line {}", number);
}

std::string trimmed(std::string_view text) {
  const char* blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool starts_with(std::string_view text, std::string_view part) {
  return text.substr(0, part.size()) == part;
}

bool begins_object(std::string_view text) {
  while (true) {
    const size_t at = text.find_first_not_of(" \t\r\n");
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at);
    if (!starts_with(text, "//")) return text.front() == '{';
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

std::optional<double> number_of(std::string_view text) {
  double v = 0;
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(v)) return std::nullopt;
  return v;
}

bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t ai = i, bj = j;
      while (ai < a.size() && a[ai] == '0') ++ai;
      while (bj < b.size() && b[bj] == '0') ++bj;
      size_t ae = ai, be = bj;
      while (ae < a.size() && digit(a[ae])) ++ae;
      while (be < b.size() && digit(b[be])) ++be;
      if (ae - ai != be - bj) return ae - ai < be - bj;
      if (const int order = a.compare(ai, ae - ai, b, bj, be - bj); order != 0) return order < 0;
      i = ae, j = be;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

std::vector<std::string> fields_of(const std::string& line, char separator) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == separator && !quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  for (std::string& field : fields) field = trimmed(field);
  return fields;
}

char separator_of(const std::string& first_line) {
  char best = ',';
  long most = 0;
  for (const char c : {',', ';', '\t'})
    if (const long n = std::count(first_line.begin(), first_line.end(), c); n > most) most = n, best = c;
  return best;
}

std::optional<std::vector<std::string>> host_names(std::string_view list) {
  std::vector<std::string> names;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || (depth != 0 && i < list.size())) continue;
    if (!expand(list.substr(begin, i - begin), names)) return std::nullopt;
    begin = i + 1;
  }
  return names;
}

}  // namespace tw::foreign
