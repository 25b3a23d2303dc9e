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
  std::string emulated;                  // whose device was emulated, computing nothing; empty: this machine's own
  Seconds step_time;                     // median, of the slowest rank
  double spread = 0;                     // relative: 1.4826 MAD / median over steps
  double drift = 0;                      // the same over runs at different times
  int rounds = 1;                        // how many runs
  std::vector<Seconds> of_rounds;        // their medians; empty of one alone
  int steps = 0;                         // of all of them
  Bytes peak_memory;                     // most bytes of tensors alive at once; 0: the trainer does not tell
  std::vector<std::int64_t> bytes_sent;  // by each rank in one step; none: the trainer does not count them
  bool bytes_as_planned = true;          // by all of them
  Seconds forward, backward, communication_exposed, optimizer;  // medians of the step's parts
  std::vector<std::string> stages;                              // what begins a pipeline's stages, but the first
  std::optional<double> processors_busy;  // a share of them, on the busiest host; none: the trainer does not tell
};

// Runs of one case at different times: the mean of their medians, as a kernel's samples are taken, but for those of
// more than 1.5 times the median of all: speeds of one machine lie nearer together, and a run as long was halted
// (base/statistics.h: mean_of_usual). Of runs that are such means the rounds count.
TrainingRun mean_of(const std::vector<TrainingRun>& runs);

struct Validated {
  std::string name;       // the case as it was asked for
  std::string work, way;  // what is trained (model, batch, ...), and by which strategy: "data=2,pipeline=4"
  std::string kind;       // of strategy, whatever its sizes: "data,pipeline"
  Prediction prediction;
  TrainingRun measurement;

  [[nodiscard]] double time_error() const;  // (predicted - measured) / measured
  [[nodiscard]] bool tells_bytes() const { return !measurement.bytes_sent.empty(); }
  [[nodiscard]] bool tells_memory() const { return measurement.peak_memory.value() > 0; }
  [[nodiscard]] double memory_error() const;  // 0 where it is not told
  [[nodiscard]] bool inside_interval() const;
  // Each rank sent what its plan says, and one of them what is predicted.
  [[nodiscard]] bool bytes_agree() const;
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
// The same, in which rounds of the same steps count that a calibration has from earlier; its kernels are kept, too.
std::vector<StepSample> with_earlier_rounds(std::vector<StepSample> samples, const std::vector<StepSample>& earlier);

// What is measured on an emulated device is called emulated. `failed` that have no earlier run are rows of a name
// alone: `where`.
Table to_table(const std::vector<Validated>& cases, const std::vector<Error>& failed = {});
Table to_table(const std::vector<Error>& failed);  // names, and why
std::string summary_sentence(const ValidationSummary& summary);
// Says what an emulated device is, and whose it was, and how busy processors were that ranks shared; empty where none
// was emulated.
std::string emulation_sentence(const std::vector<Validated>& cases);
std::string to_json(const std::vector<Validated>& cases, const std::vector<Error>& failed = {});

// Reads a trainer's JSON; `what` names the run in messages.
Result<TrainingRun> parse_training_run(const std::string& json, const std::string& what);

// Reads what to_json() wrote: the runs by the names of their cases. `file` names it in messages.
Result<std::map<std::string, TrainingRun>> parse_measurements(const std::string& json, const std::string& file);

}  // namespace sibyl
