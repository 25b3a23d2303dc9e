#include "gui/view/charts/breakdown_view.h"

#include <QHeaderView>
#include <QItemSelectionModel>
#include <QSplitter>

namespace sibyl::gui {

BreakdownView::BreakdownView(QWidget* parent) : ChartView(parent) {
  auto* splitter = new QSplitter(Qt::Vertical, this);
  bars_ = new Plot(splitter);
  bars_->setAccessibleName(tr("What the time of a step is made of"));
  auto* lower = new QWidget(splitter);
  auto* layout = new QVBoxLayout(lower);
  layout->setContentsMargins(0, 4, 0, 0);
  filter_ = new QLineEdit(lower);
  filter_->setPlaceholderText(tr("Filter layers by name or kind"));
  filter_->setAccessibleName(tr("Filter of the layer table"));
  filter_->setClearButtonEnabled(true);
  shown_.setSourceModel(&layers_);
  shown_.setSortRole(TableModel::ValueRole);
  shown_.setFilterCaseSensitivity(Qt::CaseInsensitive);
  shown_.setFilterKeyColumn(-1);
  table_ = makeTable(&shown_, true, tr("Layers"), lower);
  table_->setToolTip(
      tr("Each layer on one device: forward and backward over one micro-batch, its share of all layers' time, "
         "how sure that is, how it is known; what both passes compute, and the least they move"));
  layout->addWidget(filter_);
  layout->addWidget(table_, 1);
  splitter->setChildrenCollapsible(false);
  splitter->setSizes({2000, 3000});
  body()->addWidget(splitter);

  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    shown_.setFilterFixedString(text);
    emit viewStateChanged();
  });
  connect(table_->horizontalHeader(), &QHeaderView::sortIndicatorChanged, this, &View::viewStateChanged);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &BreakdownView::pointAtCurrentRow);
}

std::vector<BarRow> BreakdownView::rows() const {
  std::vector<BarRow> rows = {breakdownRow(baseline() ? tr("Current") : tr("Step"), prediction())};
  if (baseline()) rows.push_back(breakdownRow(tr("Baseline"), baseline()->report->prediction));
  return rows;
}

void BreakdownView::refresh() {
  layers_.setTable(layerTable(prediction()));
  if (!fitted_ && !prediction().operations.empty()) fitColumns(table_), fitted_ = true;
  redraw();
}

void BreakdownView::redraw() {
  drawStackedBars(*bars_, rows(), Measure::seconds);
  bars_->replot(QCustomPlot::rpQueuedReplot);
}

void BreakdownView::renderCharts(QPainter& painter, const QSize& size) {
  bars_->render(painter, QRect(QPoint(), size));
}

std::optional<Table> BreakdownView::table() const {
  if (!answered()) return {};
  return layerTable(prediction());
}

void BreakdownView::pointAtCurrentRow(const QModelIndex& index) {
  if (!index.isValid() || pointed_at_) return;
  emit operationPointedAt(index.siblingAtColumn(layer_name_column).data().toString());
}

void BreakdownView::pointAtOperation(const QString& operation) {
  const QModelIndexList found =
      shown_.match(shown_.index(0, layer_name_column), Qt::DisplayRole, operation, 1, Qt::MatchExactly);
  if (found.isEmpty()) return;
  pointed_at_ = true;
  table_->setCurrentIndex(found.front());
  table_->scrollTo(found.front());
  pointed_at_ = false;
}

QJsonObject BreakdownView::viewState() const {
  return {{"filter", filter_->text()},
          {"sorted_by", table_->horizontalHeader()->sortIndicatorSection()},
          {"descending", table_->horizontalHeader()->sortIndicatorOrder() == Qt::DescendingOrder}};
}

void BreakdownView::restoreViewState(const QJsonObject& state) {
  filter_->setText(state["filter"].toString());
  const int column = state["sorted_by"].toInt(-1);
  table_->sortByColumn(column < layers_.columnCount() || layers_.columnCount() == 0 ? column : -1,
                       state["descending"].toBool() ? Qt::DescendingOrder : Qt::AscendingOrder);
}

}  // namespace sibyl::gui
