// A number Sibyl answers with: its value, how sure it is, and where it comes from.
#pragma once

#include <string_view>

#include "base/units.h"

namespace sibyl {

enum class Provenance {
  measured,      // this very kernel or message was timed on the device
  interpolated,  // between measured neighbours of the same family
  estimated,     // roofline or datasheet: a guess, and shown as one
};

constexpr std::string_view to_string(Provenance p) {
  return p == Provenance::measured ? "measured" : p == Provenance::interpolated ? "interpolated" : "estimated";
}

struct Estimate {
  Seconds time;
  double relative_error = 0.0;  // one standard deviation, as a fraction of `time`
  Provenance provenance = Provenance::estimated;
};

}  // namespace sibyl
