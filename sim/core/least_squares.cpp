#include "core/least_squares.hpp"

#include <cmath>
#include <numeric>

namespace tw {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

LeastSquares least_squares(const std::vector<std::vector<double>>& columns, const std::vector<double>& missing,
                           double apart) {
  const size_t n = columns.size(), readings = missing.size();
  LeastSquares out{std::vector<double>(n, 0.0), std::vector<double>(n, 0.0), {}};
  // Modified Gram-Schmidt: column = sum of r[k] * basis k.
  struct Kept {
    size_t unknown;
    std::vector<double> basis, r;
  };
  std::vector<Kept> kept;
  for (size_t c = 0; c < n; ++c) {
    std::vector<double> rest = columns[c], r;
    const double whole = dot(rest, rest);
    for (const Kept& k : kept) {
      r.push_back(dot(k.basis, rest));
      for (size_t i = 0; i < readings; ++i) rest[i] -= r.back() * k.basis[i];
    }
    const double left = dot(rest, rest);
    if (!(whole > 0) || left < apart * whole) {
      LeastSquares::Held held{c, {}};
      for (size_t k = 0; k < kept.size(); ++k)
        if (r[k] * r[k] > apart * whole) held.like.push_back(kept[k].unknown);
      out.held.push_back(held);
      continue;
    }
    r.push_back(std::sqrt(left));
    for (double& v : rest) v /= r.back();
    kept.push_back({c, rest, r});
  }
  // Back substitution; the inverse of R beside it, whose rows are the standard errors.
  const size_t m = kept.size();
  std::vector<double> residual = missing, right(m), x(m);
  for (size_t k = 0; k < m; ++k) {
    right[k] = dot(kept[k].basis, residual);
    for (size_t i = 0; i < readings; ++i) residual[i] -= right[k] * kept[k].basis[i];
  }
  const double variance = readings > m ? dot(residual, residual) / static_cast<double>(readings - m) : 0;
  std::vector<std::vector<double>> inverse(m, std::vector<double>(m, 0.0));
  for (size_t k = m; k-- > 0;) {
    x[k] = right[k], inverse[k][k] = 1;
    for (size_t j = k + 1; j < m; ++j) {
      x[k] -= kept[j].r[k] * x[j];
      for (size_t i = j; i < m; ++i) inverse[k][i] -= kept[j].r[k] * inverse[j][i];
    }
    x[k] /= kept[k].r[k];
    for (double& v : inverse[k]) v /= kept[k].r[k];
    out.change[kept[k].unknown] = x[k];
    out.standard_error[kept[k].unknown] = std::sqrt(variance * dot(inverse[k], inverse[k]));
  }
  return out;
}

}  // namespace tw
