// What a handful of timings say, whatever a few outliers do.
#pragma once

#include <span>

namespace sibyl {

// The middle value; the mean of the two middle ones of an even number; 0 of none.
double median(std::span<const double> values);

// The mean of those up to twice the median; 0 of none. What a machine takes on the average, whose speed changes between
// states: unlike medians, such means of a whole's parts add up to that of the whole, and a lone outlier does not count.
double mean_of_usual(std::span<const double> values);

// 1.4826 times the median distance from `around`, over `around`: with the median there, what a normal distribution's
// standard deviation is relative to its mean. 0 where `around` is 0.
double relative_spread(std::span<const double> values, double around);

}  // namespace sibyl
