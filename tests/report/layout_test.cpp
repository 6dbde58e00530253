// Tables that fit a terminal, pictures without what nobody sees.
#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>

#include "report/columns.hpp"
#include "report/light_svg.hpp"

namespace tw::report {

TEST_CASE("columns are as wide as their content; heads break, then rows fold, before a line passes 80") {
  CHECK(columns_text({{"run", true}, {"time s"}}, {{"a", "1.5"}, {"long name", "12.25"}}, 1) ==
        "  run        time s\n"
        "  a             1.5\n"
        "  long name   12.25\n");
  const std::string wide(36, 'x');
  CHECK(columns_text({{wide + " head"}, {wide + "_head"}}, {{"1", "2"}}, 0) ==
        "  " + wide + "  " + wide + "_\n" +                                    //
            std::string(34, ' ') + "head" + std::string(35, ' ') + "head\n" +  //
            std::string(37, ' ') + "1" + std::string(38, ' ') + "2\n");
  const std::string value(38, 'v');
  CHECK(columns_text({{"a"}, {"b"}, {"c"}}, {{value, value, "3"}, {"1"}}, 1) ==
        std::string(39, ' ') + "a\n" + std::string(43, ' ') + "b  c\n" +  //
            "  " + value + "\n      " + value + "  3\n" +                 //
            std::string(39, ' ') + "1\n");
}

TEST_CASE("a lighter picture keeps its shape: points on a line go, corners and steps stay") {
  CHECK(light_svg("<path d='M0.00,0.00 L1.00,1.00 L2.00,2.00 L2.00,5.00  '/>") == "<path d='M0,0L2,2L2,5'/>");
  CHECK(light_svg("<polygon points = '0.00,9.00 1.00,9.05 2.00,9.00 2.00,4.00'/>") ==
        "<polygon points = '0,9 2,9 2,4'/>");
  CHECK(light_svg("<path d='M0,0 h2 M0,-1 v2'/>") == "<path d='M0,0 h2 M0,-1 v2'/>");  // no polyline
  CHECK(light_svg("<g a='1'>\n</g>\n<g><path d='M1,2 L3,4 M5,6 L7,8'/></g>") == "<g><path d='M1,2L3,4M5,6L7,8'/></g>");
  CHECK(light_svg("<defs>\n\t<circle id='p1' r='1'/>\n\t<use xlink:href='#p1' id='p2'/>\n\t<circle id='p3' r='2'/>\n"
                  "</defs>\n<use xlink:href='#p2'/>") ==
        "<defs>\n\t<circle id='p1' r='1'/>\n\t<use xlink:href='#p1' id='p2'/></defs>\n<use xlink:href='#p2'/>");
  // No point of a curve of 5,000 is farther from the thinned one than a quarter of a pixel.
  std::ostringstream text;
  const auto height = [](int i) { return 200 + 100 * std::sin(i / 300.0) + (i % 7 == 0 ? 0.1 : 0); };
  for (int i = 0; i < 5000; ++i) text << (i ? " L" : "M") << i / 5.0 << "," << height(i);
  const std::string thin = light_svg("<path d='" + text.str() + "'/>");
  CHECK(thin.size() < text.str().size() / 20);
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  char between = ' ';
  std::istringstream points(thin.substr(thin.find('M') + 1));
  points >> x0 >> between >> y0;
  int i = 0;
  while (points >> between >> x1 >> between >> y1) {
    for (; i < 5000 && i / 5.0 <= x1; ++i)
      if (i / 5.0 >= x0) CHECK(std::abs(y0 + (y1 - y0) * (i / 5.0 - x0) / (x1 - x0) - height(i)) < 0.35);
    x0 = x1, y0 = y1;
  }
  CHECK(i >= 4999);
}

}  // namespace tw::report
