// What a handful of timings say, whatever a few outliers do.
#pragma once

#include <span>
#include <vector>

namespace sibyl {

// The middle value; the mean of the two middle ones of an even number; 0 of none.
double median(std::span<const double> values);

// The mean of those up to `most` times the median; 0 of none. What a machine takes on the average, whose speed changes
// between states: unlike medians, such means of a whole's parts add up to that of the whole, and a lone outlier does
// not count.
double mean_of_usual(std::span<const double> values, double most = 2.0);

// Values of different standing, `error` being the standard error of each. What they have in common is their mean where
// they differ by no more than their errors foretell, weighted by how well each is known; where they differ by more, the
// thing itself has changed between them, and the more so the more alike they weigh (random effects: DerSimonian and
// Laird, 1986).
struct Known {
  double value = 0.0, error = 0.0;
};
struct Pooled {
  double mean = 0.0, error = 0.0;  // standard error of the mean
  std::vector<double> weights;     // of each value; together 1
};
// Errors are above 0. Of no values all is 0.
Pooled pooled(std::span<const Known> values);

// 1.4826 times the median distance from `around`, over `around`: with the median there, what a normal distribution's
// standard deviation is relative to its mean. 0 where `around` is 0.
double relative_spread(std::span<const double> values, double around);

}  // namespace sibyl
