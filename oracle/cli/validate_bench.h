// The cases of `sibyl validate`, and what they are run with: the programs that calibrate and train, on this machine or
// through a launcher on others, and the cluster on which they are predicted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/cli/arguments.h"
#include "oracle/predict.h"
#include "oracle/validate/validation.h"

namespace sibyl::cli {

// A line of the file: a model and options, as `sibyl predict` and `sibyl train` take them.
struct Case {
  std::string text;
  std::string work, way;  // what is trained, and by which strategy: what differs between cases of the same work
  std::string kind;       // of strategy, whatever its sizes
  std::vector<std::string> words;
  Arguments arguments;
  Strategy strategy;

  [[nodiscard]] bool waits_for_stages() const { return strategy.stages() > 1 && strategy.stage_starts.empty(); }
  // Where the pipeline's later stages begin: from here on predicted, calibrated and trained so.
  void place(std::vector<std::string> stages);
};

Result<std::vector<Case>> read_cases(const std::string& path);

class Bench {
 public:
  static std::vector<Option> options();
  static Result<Bench> make(const Arguments& arguments);

  // Messages and collectives of so many ranks, once more in each round, where it was asked for.
  [[nodiscard]] Result<void> measure_network(int ranks, int round) const;
  // Trains once, its kernels timed just before: the machine may be another in an hour. A pipeline that is not placed
  // is cut where the prediction would cut it now, for good.
  [[nodiscard]] Result<TrainingRun> measure(Case& one, int round) const;
  // With all that the calibration has by now.
  [[nodiscard]] Result<Prediction> prediction(const Case& one) const;

  [[nodiscard]] bool emulates() const { return emulated_.has_value(); }
  // Keeps the cases as reference steps. The factor in force while they ran is taken out again, so that recording twice
  // gives the same.
  [[nodiscard]] Result<void> record(const std::vector<Validated>& done) const;

 private:
  [[nodiscard]] std::vector<std::string> launched(int ranks, const std::vector<std::string>& program) const;
  [[nodiscard]] Result<Cluster> cluster() const;
  [[nodiscard]] Result<void> calibrate(const Case& one, int samples) const;
  [[nodiscard]] Result<TrainingRun> train(const Case& one) const;

  std::string calibration_, calibrator_;
  std::vector<std::string> launcher_, trainer_, run_words_, thread_words_;
  std::optional<std::string> kernel_budget_, known_to_, network_budget_, cache_;
  int network_known_ = 0;                // samples of each message before the first round
  std::optional<std::string> emulated_;  // whose device is emulated
  bool varies_ = false;                  // its times do
  bool calibrate_ = true;
};

}  // namespace sibyl::cli
