// What the fullest device holds at the least, whatever is run: its share of a model's weights, gradients and optimizer
// state, were all of it split evenly. A strategy of which this alone is more than a device has need not be planned.
#pragma once

#include "oracle/strategy.h"

namespace sibyl {

// `parameters`: elements of the whole model.
Bytes least_state(double parameters, const Strategy& strategy);

}  // namespace sibyl
