#include "gui/view/charts/breakdown_view.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QItemSelectionModel>
#include <QJsonArray>
#include <QSplitter>

#include "oracle/report/report.h"

namespace sibyl::gui {

BreakdownView::BreakdownView(QWidget* parent) : ChartView(parent) {
  compare_ = new StrategyMenu(tr("Compare with"), tr("Simple strategies beside the scenario's own"), this);
  notes_ = new QLabel(this);
  notes_->setWordWrap(true);
  notes_->setTextFormat(Qt::PlainText);
  auto* above = new QHBoxLayout;
  above->addWidget(compare_);
  above->addWidget(notes_, 1);
  body()->addLayout(above);
  connect(&job_, &LatestSignals::busyChanged, this, &BreakdownView::setWorking);
  connect(&job_, &LatestSignals::busyChanged, this, &View::busyChanged);
  connect(compare_, &StrategyMenu::chosenChanged, this, [this] {
    emit viewStateChanged();
    refreshAgain();
  });
  auto* splitter = new QSplitter(Qt::Vertical, this);
  bars_ = new Plot(splitter);
  bars_->setAccessibleName(tr("What the time of a step is made of"));
  auto* lower = new QWidget(splitter);
  auto* layout = new QVBoxLayout(lower);
  layout->setContentsMargins(0, 4, 0, 0);
  filter_ = new QLineEdit(lower);
  filter_->setPlaceholderText(tr("Filter layers by name or kind"));
  filter_->setAccessibleName(tr("Filter of the layer table"));
  filter_->setToolTip(tr("Only layers whose name or kind holds this text"));
  filter_->setClearButtonEnabled(true);
  shown_.setSourceModel(&layers_);
  shown_.setSortRole(TableModel::ValueRole);
  shown_.setFilterCaseSensitivity(Qt::CaseInsensitive);
  shown_.setFilterKeyColumn(-1);
  table_ = new WideTable(&shown_, true, tr("Layers"), lower);
  table_->setToolTip(
      tr("Each layer on one device: forward and backward over one micro-batch, its share of all layers' time, "
         "how sure that is, how it is known; what both passes compute, and the least they move"));
  layout->addWidget(filter_);
  layout->addWidget(table_, 1);
  splitter->setChildrenCollapsible(false);
  splitter->setSizes({2000, 3000});
  body()->addWidget(splitter, 1);

  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    shown_.setFilterFixedString(text);
    emit lookedElsewhere();
  });
  connect(table_->horizontalHeader(), &QHeaderView::sortIndicatorChanged, this, &View::lookedElsewhere);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &BreakdownView::pointAtCurrentRow);
}

std::vector<BarRow> BreakdownView::rows() const {
  std::vector<BarRow> rows = {breakdownRow(baseline() ? tr("Current") : tr("Step"), prediction())};
  if (baseline()) rows.push_back(breakdownRow(tr("Baseline"), baseline()->report->prediction));
  for (const Compared& other : compared_)
    if (other.prediction) rows.push_back(breakdownRow(other.title, *other.prediction));
  return rows;
}

// The same step, that is the same batch, on as many devices.
std::vector<SimpleStrategy> BreakdownView::offered() const {
  std::vector<SimpleStrategy> all = simpleStrategies(*current().study, Scaling::strong);
  std::erase_if(all, [this](const SimpleStrategy& simple) {
    return simple.strategy.devices() != current().study->strategy.devices();
  });
  return all;
}

void BreakdownView::askCompared() {
  std::vector<SimpleStrategy> all = offered();
  std::vector<StrategyMenu::Entry> entries;
  for (const SimpleStrategy& simple : all) entries.push_back({simple.key, simple.title});
  compare_->offer(entries);
  std::erase_if(all, [this](const SimpleStrategy& simple) { return !compare_->has(simple.key); });
  given_up_.clear();
  if (all.empty()) {
    job_.cancel();
    compared_.clear();
    return;
  }
  job_.ask(
      [study = current().study, all](const Ticket& ticket) {
        std::vector<Compared> compared;
        for (const SimpleStrategy& simple : all)
          if (!ticket.dropped())
            compared.push_back(
                {simple.title, predict(*study->graph, simple.strategy, *study->cluster, ticket.cancelled())});
        return compared;
      },
      [this](std::vector<Compared> compared) {
        compared_ = std::move(compared);
        redraw();
        emit settled();
      },
      [this](const Error& error) { giveUp(sentence(error)); });
}

void BreakdownView::stop() {
  if (job_.busy()) giveUp(stoppedText());
}

void BreakdownView::giveUp(const QString& why) {
  job_.cancel();
  compared_.clear();  // of the question before
  given_up_ = why;
  redraw();
  emit settled();
}

QString BreakdownView::notes() const {
  QStringList lines;
  for (const Compared& other : compared_) {
    if (!other.prediction)
      lines << tr("× %1: %2").arg(other.title, sentence(other.prediction.error()));
    else if (!other.prediction->fits)
      lines << tr("○ %1 does not fit in memory").arg(other.title);
  }
  if (!given_up_.isEmpty()) lines << given_up_;
  return lines.join('\n');
}

void BreakdownView::refresh() {
  layers_.setTable(layer_table(prediction()));
  table_->fit();
  askCompared();
  redraw();
}

void BreakdownView::redraw() {
  if (!answered()) return;  // a job of the answer before has come
  drawStackedBars(*bars_, rows(), Measure::seconds);
  bars_->replot(QCustomPlot::rpQueuedReplot);
  notes_->setText(notes());
}

void BreakdownView::renderCharts(QPainter& painter, const QSize& size) {
  bars_->render(painter, QRect(QPoint(), size));
}

std::optional<Table> BreakdownView::chartTable() const { return layer_table(prediction()); }

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
  return {{"compared", QJsonArray::fromStringList(compare_->chosen())},
          {"filter", filter_->text()},
          {"sorted_by", table_->horizontalHeader()->sortIndicatorSection()},
          {"descending", table_->horizontalHeader()->sortIndicatorOrder() == Qt::DescendingOrder}};
}

void BreakdownView::restoreViewState(const QJsonObject& state) {
  compare_->choose(state["compared"].toVariant().toStringList());
  filter_->setText(state["filter"].toString());
  const int column = state["sorted_by"].toInt(-1);
  table_->sortByColumn(column < layers_.columnCount() || layers_.columnCount() == 0 ? column : -1,
                       state["descending"].toBool() ? Qt::DescendingOrder : Qt::AscendingOrder);
}

}  // namespace sibyl::gui
