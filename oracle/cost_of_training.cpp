#include "oracle/cost_of_training.h"

#include <algorithm>

namespace sibyl {

TrainingCost cost_of_training(const Evaluation& step, std::int64_t global_batch, int devices, std::int64_t samples,
                              double device_hour_price) {
  constexpr double seconds_per_hour = 3600;
  const std::int64_t batch = std::max<std::int64_t>(1, global_batch);
  const std::int64_t wanted = std::max<std::int64_t>(0, samples);
  TrainingCost cost;
  cost.steps = wanted / batch + (wanted % batch > 0 ? 1 : 0);
  const double steps = static_cast<double>(cost.steps);
  cost.time = steps * step.step_time;
  cost.low = steps * step.interval_low;
  cost.high = steps * step.interval_high;
  cost.device_hours = cost.time.value() * devices / seconds_per_hour;
  cost.price = cost.device_hours * device_hour_price;
  return cost;
}

TrainingCost cost_of_training(const Prediction& prediction, std::int64_t samples, double device_hour_price) {
  return cost_of_training(prediction, prediction.global_batch, prediction.devices, samples, device_hour_price);
}

CostRatios ratios(const TrainingCost& now, const TrainingCost& then) {
  const bool priced = now.price > 0 && then.price > 0;
  return {now.time / then.time, priced ? now.price / then.price : now.device_hours / then.device_hours};
}

}  // namespace sibyl
