// Is it as right as it was asked to be? What `sibyl validate` fails by (exit code 5).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "oracle/validate/validation.h"

namespace sibyl {

// Limits of absolute relative errors, 0.06 for 6 %; what is absent is no goal. That bytes are sent as predicted is one
// always.
struct Goals {
  std::optional<double> most = {};           // of any case's step time
  std::optional<double> mean = {};           // of the mean over all cases
  std::optional<double> strategy_mean = {};  // of the mean over the cases of one kind of strategy, whichever
  std::optional<double> memory = {};         // of any case's peak memory, where the trainer tells it
  std::optional<int> wrong_pairs = {};       // of strategies that are told apart (ranking.h), in the wrong order
};

// A sentence for each goal that was missed, with the case or strategy that misses it by most.
std::vector<std::string> missed(const std::vector<Validated>& cases, const Goals& goals);

// Step times by kind of strategy (Validated::kind), in order of the cases.
struct StrategySummary {
  std::string kind;
  std::size_t cases = 0;
  double mean_error = 0, bias = 0, max_error = 0;  // of sizes; of signed errors; the largest size
};
std::vector<StrategySummary> by_strategy(const std::vector<Validated>& cases);
Table to_table(const std::vector<StrategySummary>& strategies);

}  // namespace sibyl
