// The curves of the scaling view, without widgets: which strategies are compared, over which counts of devices, and
// what is shown of a point.
#pragma once

#include <QString>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/model/study.h"
#include "gui/view/charts/plot.h"
#include "oracle/predict.h"
#include "oracle/scale_quantity.h"

namespace sibyl::gui {

// A strategy that is put beside the scenario's own: one way of splitting alone, all else the same.
struct SimpleStrategy {
  QString key;    // "zero1": in sessions
  QString title;  // "Data parallel, ZeRO 1"
  Strategy strategy;
};
std::vector<SimpleStrategy> simpleStrategies(const Study& study, Scaling scaling);

// 1, 2, 4 … `most`, and the study's own count.
std::vector<int> scalingCounts(const Study& study, int most);

// A curve: of a study and a strategy, or of a scenario of the session, which is read when its points are worked out.
struct ScalingSeries {
  QString key;  // "current", "baseline", "zero1", "scenario:NAME": in sessions
  QString name;
  int colour = 0;    // the same, whichever others are shown
  bool own = false;  // of the scenario or its baseline, not of what is put beside them
  Scenario scenario;
  std::shared_ptr<const Study> study;
  Strategy strategy;
  std::vector<ScalePoint> points;
  std::optional<Error> failure;  // where the scenario cannot be read
};
// Of 1, 2, 4 … `most` devices and the study's own count. `told(done, all)` of them. Cancelled: of nothing that is of
// use.
ScalingSeries worked_out(ScalingSeries series, StudyReader& reader, int most, Scaling scaling,
                         const std::function<void(std::size_t, std::size_t)>& told, const Cancelled& cancelled);

Measure measureOf(ScaleQuantity quantity);

// Every point of every curve, one a row.
Table scalingTable(const std::vector<ScalingSeries>& series, Scaling scaling);

}  // namespace sibyl::gui
