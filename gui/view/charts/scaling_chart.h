// Draws curves over devices: their bands, the ideal, counts that fail, and points that were measured or emulated; and
// says what of them has holes.
//
// Every curve has its band of 90 %, so light that several can be told from each other, those of the scenario and its
// baseline a little stronger. One curve can be emphasised: it comes to the top, its band is filled and has edges, and
// the others' bands step back.
#pragma once

#include <QCoreApplication>
#include <QStringList>
#include <vector>

#include "gui/view/charts/measured_runs.h"
#include "gui/view/charts/plot.h"
#include "gui/view/charts/scaling_series.h"

namespace sibyl::gui {

struct ScalingLook {
  Scaling scaling = Scaling::weak;
  ScaleQuantity quantity = ScaleQuantity::throughput;
  bool log_devices = true, log_values = true, intervals = true;
};

// What of the plot belongs to a curve.
struct DrawnCurve {
  QString key;  // of its series
  bool own = false;
  QColor colour;
  QCPGraph *line = nullptr, *low = nullptr, *high = nullptr;  // low and high: of the band, null where none is shown
};
// The empty key: none of them.
void emphasise(Plot& plot, const std::vector<DrawnCurve>& curves, const QString& key);

class ScalingChart {
  Q_DECLARE_TR_FUNCTIONS(ScalingChart)

 public:
  ScalingChart(Plot& plot, const ScalingLook& look);
  std::vector<DrawnCurve> draw(const std::vector<ScalingSeries>& series, const std::vector<MeasuredPoint>& measured);
  static QStringList notes(const std::vector<ScalingSeries>& series);

 private:
  [[nodiscard]] QPen penOf(const ScalingSeries& series) const;
  void addIdeal(const ScalingSeries& series);
  DrawnCurve addCurve(const ScalingSeries& series);
  void addBand(const ScalingSeries& series, DrawnCurve& curve);
  void explain(QCPGraph* graph, const ScalingSeries& series, std::vector<const ScalePoint*> points);
  [[nodiscard]] double bottom() const;
  void addFailures(const ScalingSeries& series);
  void addMeasured(const std::vector<MeasuredPoint>& measured);
  void addPoints(std::vector<MeasuredPoint> points, const QString& name, QCPScatterStyle::ScatterShape shape);
  void setRanges();

  Plot& plot_;
  ScalingLook look_;
};

}  // namespace sibyl::gui
