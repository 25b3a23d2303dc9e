#include "oracle/expected_maximum.h"

#include <boost/math/distributions/normal.hpp>

namespace sibyl {

double expected_maximum(int p) {
  return p <= 1 ? 0.0 : boost::math::quantile(boost::math::normal(), (p - 0.375) / (p + 0.25));
}

}  // namespace sibyl
