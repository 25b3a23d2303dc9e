// What training on so many samples takes: an epoch, or whatever is to be seen in all.
//
//   steps        = samples / batch, rounded up
//   time         = steps x step time; low and high with the ends of the step's 90 % interval
//   device-hours = time x devices / 3600 s
//   price        = device-hours x the price of one
//
// The interval is taken as it is: a prediction that is off is off in every step. Start-up, validation and checkpoints
// are not in it.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "oracle/prediction.h"

namespace sibyl {

struct TrainingCost {
  std::int64_t steps = 0;
  Seconds time, low, high;
  double device_hours = 0;
  double price = 0;  // in the currency of device_hour_price; 0 where that is
};

// Whose cost is said where nobody says how many are to be seen.
inline constexpr std::int64_t usual_samples = 1'000'000;

// Samples below 0 count as none.
TrainingCost cost_of_training(const Prediction& prediction, std::int64_t samples, double device_hour_price);
// Of a step that so many devices make of a batch of so many samples.
TrainingCost cost_of_training(const Evaluation& step, std::int64_t global_batch, int devices, std::int64_t samples,
                              double device_hour_price);

// Of `now` to `then`. Money is compared where both have a price, else device-hours.
struct CostRatios {
  double time = 1, cost = 1;
};
CostRatios ratios(const TrainingCost& now, const TrainingCost& then);

}  // namespace sibyl
