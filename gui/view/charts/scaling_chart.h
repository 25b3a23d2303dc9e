// Draws curves over devices: their bands, the ideal, counts that fail, and points that were measured or emulated; and
// says what of them has holes.
#pragma once

#include <QCoreApplication>
#include <QStringList>
#include <vector>

#include "gui/view/charts/plot.h"
#include "gui/view/charts/scaling_series.h"

namespace sibyl::gui {

struct ScalingLook {
  Scaling scaling = Scaling::weak;
  ScaleQuantity quantity = ScaleQuantity::throughput;
  bool log_devices = true, log_values = true, intervals = true;
};

class ScalingChart {
  Q_DECLARE_TR_FUNCTIONS(ScalingChart)

 public:
  ScalingChart(Plot& plot, const ScalingLook& look);
  void draw(const std::vector<ScalingSeries>& series, const std::vector<MeasuredPoint>& measured);
  static QStringList notes(const std::vector<ScalingSeries>& series);

 private:
  [[nodiscard]] QPen penOf(const ScalingSeries& series) const;
  void addIdeal(const ScalingSeries& series);
  void addBand(const ScalingSeries& series);
  void addCurve(const ScalingSeries& series);
  [[nodiscard]] double bottom() const;
  void addFailures(const ScalingSeries& series);
  void addMeasured(const std::vector<MeasuredPoint>& measured);
  void addPoints(std::vector<MeasuredPoint> points, const QString& name, QCPScatterStyle::ScatterShape shape);
  void setRanges();

  Plot& plot_;
  ScalingLook look_;
};

}  // namespace sibyl::gui
