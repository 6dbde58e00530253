#include "core/least_squares.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace tw;

TEST_CASE("least squares: exact data give exact unknowns, noise gives its standard error") {
  std::vector<double> one, line, y;
  for (int i = 0; i < 100; ++i) one.push_back(1), line.push_back(i), y.push_back(3 + 0.5 * i);
  const LeastSquares exact = least_squares({one, line}, y);
  CHECK(exact.change[0] == Approx(3));
  CHECK(exact.change[1] == Approx(0.5));
  CHECK(exact.held.empty());
  for (int i = 0; i < 100; ++i) y[static_cast<size_t>(i)] += i % 2 == 0 ? 1 : -1;
  // A mean alone: sigma / sqrt(n - 1) of what a line leaves over.
  std::vector<double> flat;
  for (int i = 0; i < 100; ++i) flat.push_back(i % 2 == 0 ? 6 : 4);
  const LeastSquares mean = least_squares({one}, flat);
  CHECK(mean.change[0] == Approx(5));
  CHECK(mean.standard_error[0] == Approx(1 / std::sqrt(99)));
}

TEST_CASE("least squares: what the data cannot tell apart is held, and named") {
  std::vector<double> one(50, 1), load, nearly, none(50, 0), y;
  for (int i = 0; i < 50; ++i) {
    load.push_back(i % 5);
    nearly.push_back(2 + 3 * (i % 5) + 0.01 * (i % 3));
    y.push_back(7 + 2 * (i % 5));
  }
  const LeastSquares found = least_squares({one, load, nearly, none}, y);
  CHECK(found.change[0] == Approx(7));
  CHECK(found.change[1] == Approx(2));
  REQUIRE(found.held.size() == 2);
  CHECK(found.held[0].unknown == 2);
  CHECK(found.held[0].like == std::vector<size_t>{0, 1});
  CHECK(found.held[1].unknown == 3);
  CHECK(found.held[1].like.empty());
}
