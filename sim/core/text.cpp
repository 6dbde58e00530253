#include "core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tw {
namespace {

// Levenshtein distance; the inputs are short keys.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string suggest(std::string_view given, const std::vector<std::string>& known, size_t most) {
  if (known.empty()) return "nothing is allowed here";
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return distance(given.substr(0, 64), a) < distance(given.substr(0, 64), b);
  });
  // A third of its letters may differ, or two: a transposition counts as two. Of a short name, one has to be right.
  const size_t allowed =
      std::min(std::max<size_t>(2, nearest->size() / 3), nearest->size() - std::min<size_t>(1, nearest->size()));
  if (distance(given.substr(0, 64), *nearest) <= allowed) return fmt::format("did you mean \"{}\"?", *nearest);
  std::string list;
  for (size_t i = 0; i < std::min(most, known.size()); ++i) list += (i ? ", " : "") + known[i];
  return "known: " + list + (known.size() > most ? ", ..." : "");
}

std::string one_of(const std::vector<std::string>& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i)
    text += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  return text;
}

std::string with_article(std::string_view noun) {
  const bool vowel = !noun.empty() && std::string_view("aeiouAEIOU").find(noun.front()) != std::string_view::npos;
  return fmt::format("{} {}", vowel ? "an" : "a", noun);
}

std::string printable(std::string_view text, size_t most) {
  std::string out;
  for (const char c : text) {
    if (out.size() >= most) return out + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace tw
