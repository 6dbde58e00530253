#include "report/light_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/geometry/algorithms/simplify.hpp>
#include <boost/geometry/geometries/linestring.hpp>
#include <boost/geometry/geometries/point_xy.hpp>
#include <boost/geometry/strategies/strategies.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::report {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double kTolerance = 0.2;  // pixels

// Ramer, Douglas and Peucker: points within the tolerance of the line that is left without them go.
Points thinned(const Points& points) {
  namespace bg = boost::geometry;
  using Point = bg::model::d2::point_xy<double>;
  bg::model::linestring<Point> line, left;
  for (const auto& [x, y] : points) line.emplace_back(x, y);
  bg::simplify(line, left, kTolerance);
  Points kept;
  for (const Point& p : left) kept.emplace_back(p.x(), p.y());
  return kept;
}

// "75.4", "431", without "-0".
std::string pixels(double v) {
  return fmt::format("{:g}", std::round(10 * v) / 10 + 0.0);
}

// The points of a text of pairs "x,y"; nothing where it holds anything else.
bool read_points(const std::string& text, Points& points) {
  const char* at = text.c_str();
  while (true) {
    at += std::strspn(at, " \t\n");
    if (*at == '\0') return !points.empty();
    char* end = nullptr;
    const double x = std::strtod(at, &end);
    if (end == at || *end != ',') return false;
    at = end + 1;
    const double y = std::strtod(at, &end);
    if (end == at) return false;
    at = end;
    points.emplace_back(x, y);
  }
}

std::string points_text(const Points& points, const char* between) {
  std::string text;
  for (const auto& [x, y] : points) text += (text.empty() ? "" : between) + pixels(x) + "," + pixels(y);
  return text;
}

// The value of `points` or of `d`, thinned; as it is where it holds more than straight lines.
std::string thinned_value(const std::string& value, bool path) {
  if (!path) {
    Points points;
    return read_points(value, points) ? points_text(thinned(points), " ") : value;
  }
  std::string out;
  for (size_t at = value.find('M'); at != std::string::npos;) {
    const size_t next = value.find('M', at + 1);
    std::string stroke = value.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    std::replace(stroke.begin(), stroke.end(), 'L', ' ');
    Points points;
    if (!read_points(stroke, points)) return value;
    out += "M" + points_text(thinned(points), "L");
    at = next;
  }
  return out.empty() ? value : out;
}

// Replaces what stands between `opening` and the next quote.
template <class Change>
void each_value(std::string& svg, std::string_view opening, const Change& change) {
  std::string out;
  size_t from = 0;
  for (size_t at = 0; (at = svg.find(opening, from)) != std::string::npos;) {
    const size_t begin = at + opening.size(), end = svg.find('\'', begin);
    if (end == std::string::npos) break;
    out.append(svg, from, begin - from);
    out += change(svg.substr(begin, end - begin));
    from = end;
  }
  svg = out + svg.substr(from);
}

void drop_all(std::string& svg, std::string_view what) {
  std::string out;
  size_t from = 0;
  for (size_t at; (at = svg.find(what, from)) != std::string::npos; from = at + what.size())
    out.append(svg, from, at - from);
  svg = out + svg.substr(from);
}

// Groups that open and close at once.
void drop_empty_groups(std::string& svg) {
  std::string out;
  size_t from = 0, at = 0;
  while ((at = svg.find("<g ", at)) != std::string::npos) {
    const size_t inside = svg.find('>', at) + 1;
    const size_t close = svg.find_first_not_of(" \t\n", inside);
    if (inside == 0 || close == std::string::npos) break;
    if (svg.compare(close, 4, "</g>") != 0) {
      at = inside;
      continue;
    }
    out.append(svg, from, at - from);
    from = at = std::min(svg.find_first_not_of(" \t\n", close + 4), svg.size());
  }
  svg = out + svg.substr(from);
}

// Markers and filters stand a line each (or several, for filters) between <defs> and </defs>; later ones use earlier.
void drop_unused_markers(std::string& svg) {
  const size_t begin = svg.find("<defs>"), end = svg.find("</defs>");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return;
  const std::string defs = svg.substr(begin + 6, end - begin - 6);
  std::string rest = svg.substr(0, begin) + svg.substr(end), kept;
  for (size_t to = defs.size(); to > 0;) {
    const size_t id = defs.rfind("id='", to - 1);
    if (id == std::string::npos) break;
    const size_t from = std::min(defs.rfind('\n', id), id);
    const std::string name = defs.substr(id + 4, defs.find('\'', id + 4) - id - 4);
    const bool used = [&] {
      for (const char* after : {"'", "\"", ")"})
        if ((rest + kept).find("#" + name + after) != std::string::npos) return true;
      return false;
    }();
    if (used) kept.insert(0, defs, from, to - from);
    to = from;
  }
  svg.replace(begin, end + 7 - begin, kept.empty() ? "" : "<defs>" + kept + "</defs>");
}

}  // namespace

std::string light_svg(const std::string& svg) {
  std::string out = svg;
  for (const std::string_view opening : {" points = '", " points='"})
    each_value(out, opening, [](const std::string& value) { return thinned_value(value, false); });
  each_value(out, " d='", [](const std::string& value) { return thinned_value(value, true); });
  drop_all(out, " stroke-width=\"1.00\" stroke-linecap=\"butt\" stroke-linejoin=\"miter\"");
  drop_empty_groups(out);
  drop_unused_markers(out);
  return out;
}

}  // namespace tw::report
