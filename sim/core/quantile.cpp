#include "core/quantile.hpp"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace tw {

double normal_quantile(double p) {
  return boost::math::quantile(boost::math::normal(), p);
}

double student_quantile(double degrees_of_freedom, double p) {
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), p);
}

}  // namespace tw
