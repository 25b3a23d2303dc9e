// What of a scaling study is drawn over devices: its points' values with their intervals, and what they would be if
// nothing were lost.
#pragma once

#include "oracle/predict.h"

namespace sibyl {

enum class ScaleQuantity { throughput, step_time, efficiency };

// A value and its 90 % interval: where a step takes longer, throughput and efficiency are lower.
struct Ranged {
  double value = 0, low = 0, high = 0;
};
Ranged value_of(const ScalePoint& point, ScaleQuantity quantity);  // of one that has a prediction

// Of a step that was measured, of so many samples; it has a time or a throughput.
double measured_value(Seconds step_time, double samples, ScaleQuantity quantity);

// What `devices` would give if nothing were lost from the first point on, which has a prediction.
double ideal_value(const ScalePoint& first, int devices, Scaling scaling, ScaleQuantity quantity);

}  // namespace sibyl
