// How it scales: throughput, step time or efficiency over devices, of the scenario, the baseline and simple strategies;
// weak or strong; with intervals, the ideal, and points that were measured.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QPushButton>
#include <deque>

#include "gui/model/latest.h"
#include "gui/view/charts/chart_view.h"
#include "gui/view/charts/scaling_series.h"
#include "gui/view/charts/strategy_menu.h"

namespace sibyl::gui {

class ScalingView : public ChartView {
  Q_OBJECT

 public:
  explicit ScalingView(QWidget* parent);

  [[nodiscard]] QString key() const override { return "scaling"; }
  [[nodiscard]] QString title() const override { return tr("Scaling"); }
  [[nodiscard]] bool busy() const override { return job_.busy(); }
  void stop() override;
  [[nodiscard]] std::optional<Table> table() const override;
  [[nodiscard]] QJsonObject viewState() const override;
  void restoreViewState(const QJsonObject& state) override;

  // Puts the points of a file of `sibyl validate --save` beside the curves; what is wrong with it is said below them.
  void loadMeasured(const QString& file);

 protected:
  void refresh() override;
  void redraw() override;
  void renderCharts(QPainter& painter, const QSize& size) override;

 private:
  QWidget* makeControls();
  void lookedAtOtherwise();
  [[nodiscard]] Scaling scaling() const;
  [[nodiscard]] ScaleQuantity quantity() const;
  [[nodiscard]] std::vector<ScalingSeries> wanted() const;
  void askAll();
  void askNext();
  void readMeasured();
  void chooseMeasured();
  void addIdeal(const ScalingSeries& series);
  void addBand(const ScalingSeries& series, const QColor& colour);
  void addCurve(const ScalingSeries& series, const QColor& colour);
  void addFailures(const ScalingSeries& series, const QColor& colour);
  void addMeasured();
  [[nodiscard]] QString notes() const;

  QComboBox* scaling_;
  QComboBox* quantity_;
  QComboBox* most_;
  StrategyMenu* compare_;
  QCheckBox *log_devices_, *log_values_, *intervals_;
  QPushButton* measured_button_;
  Plot* plot_;
  QLabel* notes_;
  QString measured_file_;
  Result<std::vector<MeasuredPoint>> measured_ = std::vector<MeasuredPoint>{};
  std::vector<ScalingSeries> series_;  // done
  std::deque<ScalingSeries> to_come_;
  std::size_t all_ = 0;  // series asked for
  bool stopped_ = false;
  Latest<std::vector<ScalePoint>> job_;
};

}  // namespace sibyl::gui
