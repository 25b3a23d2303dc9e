#include "oracle/scale_quantity.h"

namespace sibyl {

Ranged value_of(const ScalePoint& point, ScaleQuantity quantity) {
  const Prediction& p = *point.prediction;
  const double time = p.step_time.value(), low = p.interval_low.value(), high = p.interval_high.value();
  if (quantity == ScaleQuantity::step_time) return {time, low, high};
  const double value = quantity == ScaleQuantity::throughput ? p.throughput : point.efficiency;
  return {value, value * time / high, low > 0 ? value * time / low : value};
}

double measured_value(Seconds step_time, double samples, ScaleQuantity quantity) {
  switch (quantity) {
    case ScaleQuantity::throughput: return samples / step_time.value();
    case ScaleQuantity::step_time: return step_time.value();
    case ScaleQuantity::efficiency: break;
  }
  return 0;
}

double ideal_value(const ScalePoint& first, int devices, Scaling scaling, ScaleQuantity quantity) {
  const double times = static_cast<double>(devices) / first.devices;
  switch (quantity) {
    case ScaleQuantity::throughput: return first.prediction->throughput * times;
    case ScaleQuantity::step_time:
      return first.prediction->step_time.value() / (scaling == Scaling::weak ? 1.0 : times);
    case ScaleQuantity::efficiency: return 1;
  }
  return 0;
}

}  // namespace sibyl
