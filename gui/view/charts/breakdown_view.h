// Where the time of a step goes: what it is made of, and layer by layer.
#pragma once

#include <QLineEdit>
#include <QSortFilterProxyModel>

#include "gui/model/latest.h"
#include "gui/model/table_model.h"
#include "gui/view/charts/breakdown.h"
#include "gui/view/charts/chart_view.h"
#include "gui/view/charts/scaling_series.h"
#include "gui/view/charts/strategy_menu.h"

namespace sibyl::gui {

class BreakdownView : public ChartView {
  Q_OBJECT

 public:
  explicit BreakdownView(QWidget* parent);

  [[nodiscard]] QString key() const override { return "breakdown"; }
  [[nodiscard]] QString title() const override { return tr("Breakdown"); }
  [[nodiscard]] bool busy() const override { return job_.busy(); }
  void stop() override;
  [[nodiscard]] QJsonObject viewState() const override;
  void restoreViewState(const QJsonObject& state) override;
  void pointAtOperation(const QString& operation) override;

 protected:
  void refresh() override;
  void redraw() override;
  void renderCharts(QPainter& painter, const QSize& size) override;
  [[nodiscard]] std::optional<Table> chartTable() const override;

 private:
  // A simple strategy beside the scenario's own.
  struct Compared {
    QString title;
    Result<Prediction> prediction;
  };
  [[nodiscard]] std::vector<SimpleStrategy> offered() const;
  void askCompared();
  void giveUp(const QString& why);
  [[nodiscard]] QString notes() const;
  [[nodiscard]] std::vector<BarRow> rows() const;
  void pointAtCurrentRow(const QModelIndex& index);

  StrategyMenu* compare_;
  QLabel* notes_;
  std::vector<Compared> compared_;
  QString given_up_;  // why; empty: it was not
  Latest<std::vector<Compared>> job_;
  Plot* bars_;
  QLineEdit* filter_;
  TableModel layers_;
  QSortFilterProxyModel shown_;
  WideTable* table_;
  bool pointed_at_ = false;  // the row is picked by another view
};

}  // namespace sibyl::gui
