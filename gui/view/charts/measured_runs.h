// Training runs of a file of `sibyl validate --save`, to stand beside the curves of the scaling view; without widgets.
#pragma once

#include <QString>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gui/model/scenario.h"
#include "oracle/validate/validation.h"

namespace sibyl::gui {

struct MeasuredPoint {
  QString name;       // the case
  QString emulated;   // whose device was emulated, computing nothing; empty: it was measured
  QString otherwise;  // options by which it is another training than the scenario's: "--optimizer momentum"; or empty
  int devices = 1;
  double samples = 0;  // of a step
  Seconds step_time;
  double spread = 0;
};

using Runs = std::map<std::string, TrainingRun>;  // by the names of their cases

// Those that train the scenario's model, however it is split. The path of a model in a case is one from the folder that
// `sibyl validate` ran in, which nobody has written down: it is looked for from the file's folder and from the
// program's. Fails where there are none.
Result<std::vector<MeasuredPoint>> measuredPoints(const Runs& runs, const std::string& file, const Scenario& scenario);

// A file of runs, read again only where it has changed.
class MeasuredFile {
 public:
  void choose(const QString& path) { path_ = path; }  // empty: none
  [[nodiscard]] const QString& path() const { return path_; }
  // None where no file is chosen.
  Result<std::vector<MeasuredPoint>> points(const Scenario& scenario);

 private:
  using State = std::optional<std::pair<std::filesystem::file_time_type, std::uintmax_t>>;  // written when, how large

  QString path_, read_;  // read_: whose runs these are
  State state_;
  Result<Runs> runs_;
};

}  // namespace sibyl::gui
