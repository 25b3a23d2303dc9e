#include "gui/view/charts/memory_view.h"

#include <QHBoxLayout>
#include <QItemSelectionModel>
#include <QSplitter>
#include <algorithm>

#include "base/quantity.h"
#include "gui/view/colours.h"
#include "oracle/report/report.h"

namespace sibyl::gui {
namespace {

constexpr std::size_t most_rows = 10;  // devices of a pipeline that are shown
constexpr std::size_t columns = 1500;  // of the history: no screen shows more
constexpr double room_at_the_top = 1.15;
constexpr double near_capacity = 1.4;  // times what is needed
constexpr double far_capacity = 8;     // times what is used

QString shown(Bytes bytes) { return QString::fromStdString(to_string(bytes)); }

}  // namespace

MemoryView::MemoryView(QWidget* parent) : ChartView(parent) {
  auto* splitter = new QSplitter(Qt::Vertical, this);
  splitter->setChildrenCollapsible(false);
  bars_ = new Plot(splitter);
  bars_->setAccessibleName(tr("Memory by kind against capacity"));

  auto* middle = new QWidget(splitter);
  auto* layout = new QVBoxLayout(middle);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* line = new QHBoxLayout;
  device_ = new QComboBox(middle);
  device_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  device_->setAccessibleName(tr("Device of the pipeline whose memory is shown over time"));
  device_->setToolTip(tr("The device of the pipeline whose memory is shown over time"));
  peak_ = new QLabel(middle);
  peak_->setWordWrap(true);
  line->addWidget(device_);
  line->addWidget(peak_, 1);
  history_ = new Plot(middle);
  history_->setAccessibleName(tr("Memory over the time of a step"));
  history_->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  history_->axisRect()->setRangeDrag(Qt::Horizontal);
  history_->axisRect()->setRangeZoom(Qt::Horizontal);
  layout->addWidget(makeProgress(job_, tr("Progress of the memory's history"), middle));
  layout->addLayout(line);
  layout->addWidget(history_, 1);

  sorted_.setSourceModel(&alive_);
  sorted_.setSortRole(TableModel::ValueRole);
  table_ = new WideTable(&sorted_, true, tr("What is alive at the peak"), splitter);
  splitter->addWidget(table_);
  splitter->setSizes({3000, 3500, 3000});
  body()->addWidget(splitter);

  connect(&job_, &LatestSignals::busyChanged, this, &MemoryView::setWorking);
  connect(&job_, &LatestSignals::busyChanged, this, &View::busyChanged);
  connect(device_, &QComboBox::activated, this, [this](int index) { ask(static_cast<std::size_t>(index)); });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& index) {
    const QString operation = index.siblingAtColumn(alive_operation_column).data().toString();
    if (!operation.isEmpty()) emit operationPointedAt(operation);
  });
}

void MemoryView::refresh() {
  if (asked_ != current().study) ask({});
  redraw();
}

void MemoryView::ask(std::optional<std::size_t> coordinate) {
  asked_ = current().study;
  job_.ask(
      [study = asked_, coordinate](const Ticket& ticket) {
        return step_memory(*study->graph, study->strategy, *study->cluster, coordinate, ticket.cancelled());
      },
      [this](Result<StepMemory> memory) { deliver(std::move(memory)); },
      [this](const Error& error) { deliver(Failure(error)); });
}

void MemoryView::stop() {
  if (!job_.busy()) return;
  job_.cancel();
  deliver(fail(stoppedText().toStdString()));
}

void MemoryView::deliver(Result<StepMemory> memory) {
  memory_ = std::move(memory);
  offerDevices();
  alive_.setTable(memory_ ? alive_table(memory_->history) : Table{});
  table_->fit();
  redraw();
  emit settled();
}

void MemoryView::offerDevices() {
  const int devices = memory_ ? static_cast<int>(memory_->devices.size()) : 0;
  device_->clear();
  for (int d = 0; d < devices; ++d) device_->addItem(tr("Pipeline device %1").arg(d));
  if (memory_) device_->setCurrentIndex(static_cast<int>(memory_->coordinate));
  device_->setVisible(devices > 1);
}

// Of a pipeline every device, the fullest where there are too many; the prediction's own is the fullest of all.
std::vector<BarRow> MemoryView::rows() const {
  std::vector<BarRow> rows = {memoryRow(baseline() ? tr("Current") : tr("Fullest device"), prediction().memory)};
  if (baseline()) rows.push_back(memoryRow(tr("Baseline"), baseline()->report->prediction.memory));
  if (!memory_ || job_.busy() || memory_->devices.size() < 2) return rows;
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < memory_->devices.size(); ++d) order.push_back(d);
  const auto total = [&](std::size_t d) { return memory_->devices[d].peak.needed(); };
  std::ranges::stable_sort(order, std::greater{}, total);
  order.resize(std::min(order.size(), most_rows));
  std::ranges::sort(order);
  for (const std::size_t d : order) rows.push_back(memoryRow(tr("Device %1").arg(d), memory_->devices[d].peak));
  return rows;
}

void MemoryView::redraw() {
  if (!answered()) return;  // a job of the answer before has come
  drawBars();
  drawHistory();
}

void MemoryView::drawBars() {
  const Bytes capacity = prediction().memory_capacity;
  const QColor colour = seriesColour(1, palette());
  const std::vector<BarRow> bars = rows();
  double longest = 0;
  for (const BarRow& row : bars) longest = std::max(longest, lengthOf(row));
  // A capacity that is many times as much would leave nothing to be seen of the bars.
  const bool far = capacity.value() > far_capacity * longest;
  drawStackedBars(*bars_, bars, Measure::bytes, far ? 0 : capacity.value() * 1.04);
  if (far)
    bars_->addCorner(tr("capacity %1 →").arg(shown(capacity)), colour);
  else if (capacity.value() > 0)
    bars_->addLimit(bars_->xAxis, capacity.value(), tr("capacity %1").arg(shown(capacity)), colour);
  bars_->replot(QCustomPlot::rpQueuedReplot);
}

// One level above the other, each from the sum of those below it up; the allocator's cache above what is alive.
void MemoryView::drawLevels(const MemoryHistory& history) {
  const std::vector<HighestMoment> moments = highestMoments(history, columns);
  QVector<double> times, level(static_cast<qsizetype>(moments.size()) + 1, 0.0);
  for (const HighestMoment& m : moments) times << history.moments[m.moment].start.value();
  times << history.end.value();
  QCPGraph* below = nullptr;
  const auto add = [&](const QString& title, std::string_view key, Qt::BrushStyle style, const auto& bytes_of) {
    double most = 0;
    for (std::size_t n = 0; n < moments.size(); ++n) {
      const double bytes = bytes_of(moments[n]).value();
      level[static_cast<qsizetype>(n)] += bytes;
      most = std::max(most, bytes);
    }
    if (most == 0) return;
    level.last() = level[level.size() - 2];
    QCPGraph* graph = history_->addGraph();
    graph->setLineStyle(QCPGraph::lsStepLeft);
    graph->setAdaptiveSampling(false);
    graph->setData(times, level, true);
    graph->setName(title);
    const QColor colour = colourOf(colourKey(key), palette());
    graph->setPen(QPen(colour, 1));
    graph->setBrush(style == Qt::SolidPattern ? QBrush(mixed(palette().color(QPalette::Base), colour, 0.85))
                                              : QBrush(colour, style));
    if (below) graph->setChannelFillGraph(below);
    below = graph;
  };
  for (const MemoryPart& part : memory_parts())
    add(titled(part.title), part.key, Qt::SolidPattern,
        [&](const HighestMoment& m) { return history.moments[m.moment].most.*part.value; });
  add(tr("Allocator's cache"), cache_key, hatching,
      [&](const HighestMoment& m) { return m.needed - history.moments[m.moment].most.total; });
}

void MemoryView::drawHistory() {
  history_->clear();
  if (!memory_) {
    peak_->setText(asked_ && !job_.busy() ? sentence(memory_.error()) : QString());
    return history_->replot(QCustomPlot::rpQueuedReplot);
  }
  const MemoryHistory& history = memory_->history;
  drawLevels(history);
  const MemoryMoment& peak = history.moments[history.peak];
  const Bytes needed = history.footprint.peak.needed(), capacity = prediction().memory_capacity;
  // What is near is shown with them.
  const bool near = capacity.value() > 0 && capacity.value() < near_capacity * needed.value();
  history_->setMeasure(history_->xAxis, Measure::seconds);
  history_->setMeasure(history_->yAxis, Measure::bytes);
  history_->xAxis->setRange(0, history.end.value());
  history_->yAxis->setRange(0, (near ? std::max(capacity, needed) : needed).value() * room_at_the_top);
  history_->addLimit(history_->xAxis, peak.start.value(), tr("most alive: %1").arg(shown(peak.most.total)),
                     history_->textColour());
  if (near)
    history_->addLimit(history_->yAxis, capacity.value(), tr("capacity %1").arg(shown(capacity)),
                       seriesColour(1, palette()));
  history_->explainElsewhere([this](const QPointF& pixel) { return explanationAt(pixel); });
  history_->replot(QCustomPlot::rpQueuedReplot);
  QString sentence =
      tr("Most is alive in %1: %2.").arg(QString::fromStdString(history.where(history.peak)), shown(peak.most.total));
  if (needed > peak.most.total)
    sentence += tr(" With its allocator's cache the device holds up to %1.").arg(shown(needed));
  peak_->setText(sentence + outside());
}

// What lies elsewhere instead: `--offload`.
QString MemoryView::outside() const {
  QString all;
  if (prediction().host_memory.value() > 0)
    all += tr(" Each host holds %1 for its devices.").arg(shown(prediction().host_memory));
  if (prediction().storage.value() > 0)
    all += tr(" The storage of each node holds %1 for its devices.").arg(shown(prediction().storage));
  return all;
}

QString MemoryView::explanationAt(const QPointF& pixel) const {
  if (!memory_ || !history_->axisRect()->rect().contains(pixel.toPoint())) return {};
  const MemoryHistory& history = memory_->history;
  const Seconds time{history_->xAxis->pixelToCoord(pixel.x())};
  const auto after = std::ranges::upper_bound(history.moments, time, {}, &MemoryMoment::start);
  if (after == history.moments.begin() || time > history.end) return {};
  const auto moment = static_cast<std::size_t>(after - history.moments.begin()) - 1;
  const MemoryBreakdown& most = history.moments[moment].most;
  QString text = QString::fromStdString(to_string(time) + ", " + history.where(moment)) + "\n" +
                 tr("In all: %1").arg(shown(most.needed()));
  for (const MemorySlice& slice : memory_slices(most)) text += "\n" + titled(slice.title) + ": " + shown(slice.value);
  return most.cached().value() > 0 ? text + "\n" + tr("The cache: %1").arg(QString::fromUtf8(cache_meaning.data()))
                                   : text;
}

void MemoryView::renderCharts(QPainter& painter, const QSize& size) {
  const int upper = size.height() * 2 / 5;
  bars_->render(painter, {0, 0, size.width(), upper});
  history_->render(painter, {0, upper, size.width(), size.height() - upper});
}

std::optional<Table> MemoryView::chartTable() const {
  return memory_ ? alive_table(memory_->history) : to_table(*current().report);
}

}  // namespace sibyl::gui
