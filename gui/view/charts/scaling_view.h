// How it scales: throughput, step time or efficiency over devices, of the scenario, the baseline, others of the session
// and simple strategies, whichever are ticked; weak or strong; with intervals, the ideal, and points that were
// measured.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QPushButton>
#include <deque>

#include "gui/model/latest.h"
#include "gui/view/charts/chart_view.h"
#include "gui/view/charts/measured_runs.h"
#include "gui/view/charts/scaling_chart.h"
#include "gui/view/charts/scaling_series.h"
#include "gui/view/charts/strategy_menu.h"

namespace sibyl::gui {

class ScalingView : public ChartView {
  Q_OBJECT

 public:
  explicit ScalingView(QWidget* parent);

  [[nodiscard]] QString key() const override { return "scaling"; }
  [[nodiscard]] QString title() const override { return tr("Scaling"); }
  [[nodiscard]] bool busy() const override { return job_.busy() || reading_.busy(); }
  void stop() override;
  void forget() override;
  void showOthers(const std::vector<Scenario>& scenarios) override { others_ = scenarios; }
  void followRename(const QString& before, const QString& after) override;
  [[nodiscard]] QJsonObject viewState() const override;
  void restoreViewState(const QJsonObject& state) override;

  // Puts the points of a file of `sibyl validate --save` beside the curves, once it is read; what is wrong with it is
  // said below them.
  void loadMeasured(const QString& file);

 protected:
  void refresh() override;
  void redraw() override;
  void renderCharts(QPainter& painter, const QSize& size) override;
  [[nodiscard]] std::optional<Table> chartTable() const override;

 private:
  QWidget* makeControls();
  void lookedAtOtherwise();
  void followPointer();
  [[nodiscard]] QString curveAt(const QPoint& pixel) const;
  void emphasise(const QString& hovered);
  [[nodiscard]] Scaling scaling() const;
  [[nodiscard]] ScaleQuantity quantity() const;
  [[nodiscard]] std::vector<ScalingSeries> offered() const;
  void readMeasured();
  void askAll();
  void askNext();
  void giveUp(const QString& why);
  void dimUntilThere();
  void tellSettled();
  void chooseMeasured();
  [[nodiscard]] QString otherTrainings() const;
  [[nodiscard]] QString notes() const;

  QComboBox* scaling_;
  QComboBox* quantity_;
  QComboBox* most_;
  StrategyMenu* curves_;
  QCheckBox *log_devices_, *log_values_, *intervals_;
  QPushButton* measured_button_;
  Plot* plot_;
  QLabel* notes_;
  using Points = std::vector<MeasuredPoint>;
  QString measured_path_;
  std::shared_ptr<MeasuredFile> measured_file_ = std::make_shared<MeasuredFile>();  // reading_'s alone
  Result<Points> measured_ = Points{};
  std::vector<ScalingSeries> series_;  // done
  std::vector<DrawnCurve> curves_drawn_;
  QString hovered_, picked_;  // keys of curves; picked: by a click, until the next
  std::deque<ScalingSeries> to_come_;
  std::size_t all_ = 0;  // series asked for
  std::vector<Scenario> others_;
  std::shared_ptr<StudyReader> reader_ = std::make_shared<StudyReader>();  // of others; the job's alone
  QString given_up_;                                                       // why; empty: it was not
  Latest<ScalingSeries> job_;
  Latest<Result<Points>> reading_;
};

}  // namespace sibyl::gui
