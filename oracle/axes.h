// A strategy's degrees by axis, to be set. The axes themselves: axes.cpp.
#pragma once

#include "oracle/strategy.h"

namespace sibyl {

int& degree_of(Strategy& strategy, MeshAxis axis);

}  // namespace sibyl
