// What each input is worth: a tornado of what the step becomes with each twice and half as good.
#pragma once

#include "gui/model/latest.h"
#include "gui/view/charts/chart_view.h"
#include "gui/view/charts/plot.h"
#include "oracle/report/sensitivity_report.h"

namespace sibyl::gui {

// Those of which something can be seen, the largest effect first; and the others: what changes nothing, and what cannot
// be varied here.
struct Tornado {
  std::vector<const Sensitivity*> shown, without_effect, not_varied;
};
Tornado tornadoOf(const Sensitivities& all);

class SensitivityView : public ChartView {
  Q_OBJECT

 public:
  explicit SensitivityView(QWidget* parent);

  [[nodiscard]] QString key() const override { return "sensitivity"; }
  [[nodiscard]] QString title() const override { return tr("Sensitivity"); }
  [[nodiscard]] bool busy() const override { return job_.busy(); }
  void stop() override;

 protected:
  void refresh() override;
  void redraw() override;
  void renderCharts(QPainter& painter, const QSize& size) override;
  [[nodiscard]] std::optional<Table> chartTable() const override;

 private:
  void deliver(Result<SensitivityReport> report);
  void addBar(double y, const Sensitivity& input, const Variation& variation, const QString& name,
              const QColor& colour);
  void drawBars();
  [[nodiscard]] QString restText() const;
  [[nodiscard]] QString explanationAt(const QPointF& pixel) const;

  QLabel* says_;
  Plot* plot_;
  QLabel* rest_;
  std::shared_ptr<const Study> asked_;
  Result<SensitivityReport> report_ = fail("");
  Tornado tornado_;  // of report_
  Latest<Result<SensitivityReport>> job_;
};

}  // namespace sibyl::gui
