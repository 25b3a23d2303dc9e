// Predicted against measured: the table that says whether Sibyl's numbers are right.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/table.h"
#include "base/units.h"
#include "calibration/calibration.h"
#include "oracle/prediction.h"

namespace sibyl {

// What a training run reports of itself (`sibyl train --json`).
struct TrainingRun {
  Seconds step_time;  // median, of the slowest rank
  double spread = 0;  // relative: 1.4826 MAD / median over steps
  double drift = 0;   // the same over runs at different times
  int steps = 0;
  Bytes peak_memory;                      // most bytes of tensors alive at once; 0: the trainer does not tell
  std::optional<std::int64_t> bytes_sent;  // by rank 0 in one step; none: the trainer does not count them
  Seconds forward, backward, communication_exposed, optimizer;  // medians of the step's parts
};

// Runs of one case at different times: medians of them.
TrainingRun median_of(const std::vector<TrainingRun>& runs);

struct Validated {
  std::string name;  // the case as it was asked for
  Prediction prediction;
  TrainingRun measurement;

  [[nodiscard]] double time_error() const;  // (predicted - measured) / measured
  [[nodiscard]] bool tells_memory() const { return measurement.peak_memory.value() > 0; }
  [[nodiscard]] double memory_error() const;  // 0 where it is not told
  [[nodiscard]] bool inside_interval() const;
  [[nodiscard]] bool bytes_agree() const {
    return prediction.bytes_sent == measurement.bytes_sent.value_or(prediction.bytes_sent);
  }
};

// Over all cases, of absolute errors.
struct ValidationSummary {
  std::size_t cases = 0;
  std::size_t memory_cases = 0, bytes_cases = 0;  // in which the trainer tells memory, and counts bytes
  double mean_time_error = 0, median_time_error = 0, max_time_error = 0, bias = 0;  // bias: mean of signed errors
  double mean_memory_error = 0, max_memory_error = 0;
  double inside_interval = 0;  // share of cases
  bool bytes_agree = true;     // in all of them
};
ValidationSummary summarize(const std::vector<Validated>& cases);

// The cases as reference steps of a calibration. Compute alone: forward, backward and optimizer, as predicted without a
// composition factor (`factor` is the one that was applied) and as measured.
std::vector<StepSample> as_step_samples(const std::vector<Validated>& cases, double factor);

Table to_table(const std::vector<Validated>& cases);
std::string summary_sentence(const ValidationSummary& summary);
std::string to_json(const std::vector<Validated>& cases);

// Reads a trainer's JSON; `what` names the run in messages.
Result<TrainingRun> parse_training_run(const std::string& json, const std::string& what);

// Reads what to_json() wrote: the runs by the names of their cases. `file` names it in messages.
Result<std::map<std::string, TrainingRun>> parse_measurements(const std::string& json, const std::string& file);

}  // namespace sibyl
