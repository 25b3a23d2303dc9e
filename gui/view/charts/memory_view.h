// Memory: by kind, and by the devices of a pipeline, against capacity; and over the time of a step, with what is alive
// where there is most of it.
#pragma once

#include <QComboBox>
#include <QSortFilterProxyModel>

#include "gui/model/latest.h"
#include "gui/model/table_model.h"
#include "gui/view/charts/chart_view.h"
#include "gui/view/charts/memory_series.h"

namespace sibyl::gui {

class MemoryView : public ChartView {
  Q_OBJECT

 public:
  explicit MemoryView(QWidget* parent);

  [[nodiscard]] QString key() const override { return "memory"; }
  [[nodiscard]] QString title() const override { return tr("Memory"); }
  [[nodiscard]] bool busy() const override { return job_.busy(); }
  void stop() override;

 protected:
  void refresh() override;
  void redraw() override;
  void renderCharts(QPainter& painter, const QSize& size) override;
  [[nodiscard]] std::optional<Table> chartTable() const override;

 private:
  void ask(std::optional<std::size_t> coordinate);
  void deliver(Result<StepMemory> memory);
  void offerDevices();
  void drawBars();
  void drawHistory();
  void drawLevels(const MemoryHistory& history);
  [[nodiscard]] std::vector<BarRow> rows() const;
  [[nodiscard]] QString outside() const;
  [[nodiscard]] QString explanationAt(const QPointF& pixel) const;

  Plot* bars_;
  QComboBox* device_;
  QLabel* peak_;
  Plot* history_;
  TableModel alive_;
  QSortFilterProxyModel sorted_;
  WideTable* table_;
  std::shared_ptr<const Study> asked_;
  Result<StepMemory> memory_ = fail("");
  Latest<Result<StepMemory>> job_;
};

}  // namespace sibyl::gui
