// A Study is a Scenario read: the model imported, the cluster loaded and changed, the strategy parsed. All of it is
// immutable and shared, so that any thread may ask the library about it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancelled.h"
#include "base/result.h"
#include "calibration/cluster.h"
#include "gui/model/scenario.h"
#include "models/graph.h"
#include "models/onnx/import.h"
#include "oracle/cli/arguments.h"
#include "oracle/report/report.h"
#include "oracle/strategy.h"

namespace sibyl::gui {

struct Study {
  Scenario scenario;
  std::shared_ptr<const Graph> graph;  // for any batch; of the one that it names was first asked
  std::shared_ptr<const Cluster> cluster;
  Strategy strategy;
};

// Which part of a scenario an Error is about.
enum class Part { none, model, cluster, training, prediction };

// What was last read, so that moving a slider does not import the model again. For one thread at a time.
class StudyReader {
 public:
  StudyReader();
  ~StudyReader();
  // The message says which part of the scenario is wrong, as the command line does. `cancelled` ends it, with an Error
  // of code interrupted; nothing is kept of what was not read to its end.
  Result<std::shared_ptr<const Study>> read(const Scenario& scenario, const Cancelled& cancelled = {});
  // Of the last read(): the part that its Error is about, and what can be said of the parts that were read.
  [[nodiscard]] Part wrong() const;
  [[nodiscard]] std::vector<OpenDimension> dimensions() const;             // of the model: what --dim can bind
  [[nodiscard]] std::shared_ptr<const Cluster> unchanged_cluster() const;  // before the scenario's changes

 private:
  struct Memo;
  std::unique_ptr<Memo> memo_;
};

// What follows `sibyl predict`, read: of a scenario (words(), scenario.h), or of whatever else is said in these words.
Result<cli::Arguments> read_question(const std::vector<std::string>& words);

// The strategy of a scenario that is about a study's own graph and cluster; nothing where it is about others, or cannot
// be read. So quick that a slider can ask for it.
std::optional<Strategy> strategy_on(const Study& study, const Scenario& scenario);

// What the library says of a scenario. `study` is null where the scenario could not be read; then `report` is the
// Error.
struct Answer {
  Scenario scenario;
  std::shared_ptr<const Study> study;
  Result<PredictionReport> report;
  Part wrong = Part::none;
  std::vector<OpenDimension> dimensions = {};
  std::shared_ptr<const Cluster> unchanged_cluster = {};  // null where it could not be read
};
using AnswerPointer = std::shared_ptr<const Answer>;

}  // namespace sibyl::gui
