#include "gui/view/charts/scaling_view.h"

#include <QFileDialog>
#include <QJsonArray>
#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/quantity.h"
#include "gui/view/colours.h"
#include "gui/view/flow_layout.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl::gui {
namespace {

constexpr int measured_colour = 1;

QString explanation(const ScalingSeries& series, const ScalePoint& point) {
  QString text = series.name + ", " + QString::fromStdString(plural(point.devices, "device"));
  if (!point.prediction) return text + "\n" + sentence(point.prediction.error());
  const Prediction& p = *point.prediction;
  text += "\n" + QObject::tr("step time %1 ± %2, %3\nefficiency %4, batch %5\nheld back by %6")
                     .arg(QString::fromStdString(to_string(p.step_time)),
                          QString::fromStdString(to_string(half_interval(p))),
                          quantityText(Measure::samples_per_second, p.throughput),
                          quantityText(Measure::share, point.efficiency),
                          QString::fromStdString(grouped(p.global_batch)), QString::fromStdString(p.bottleneck.name));
  if (!p.fits)
    text += "\n" + QObject::tr("Does not fit: it needs %1 of %2")
                       .arg(QString::fromStdString(to_string(p.memory.needed())),
                            QString::fromStdString(to_string(p.memory_capacity)));
  return text;
}

const ScalePoint* first_of(const ScalingSeries& series) {
  const auto found = std::ranges::find_if(series.points, [](const ScalePoint& p) { return p.prediction.has_value(); });
  return found == series.points.end() ? nullptr : &*found;
}

}  // namespace

ScalingView::ScalingView(QWidget* parent) : ChartView(parent) {
  plot_ = new Plot(this);
  plot_->setAccessibleName(tr("Scaling over devices"));
  plot_->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  notes_ = new QLabel(this);
  notes_->setWordWrap(true);
  notes_->setTextFormat(Qt::PlainText);
  body()->addWidget(makeControls());
  body()->addWidget(makeProgress(job_, tr("Progress of the curves"), this));
  body()->addWidget(plot_, 1);
  body()->addWidget(notes_);
  connect(&job_, &LatestSignals::busyChanged, this, &View::busyChanged);
}

QWidget* ScalingView::makeControls() {
  auto* box = new QWidget(this);
  auto* line = new FlowLayout(box);
  const auto choice = [&](const QString& name, const QStringList& entries) {
    auto* combo = new QComboBox(box);
    combo->addItems(entries);
    combo->setAccessibleName(name);
    combo->setToolTip(name);
    line->addWidget(combo);
    return combo;
  };
  scaling_ = choice(tr("Weak: the batch of a device stays. Strong: the batch of the step stays."),
                    {tr("Weak scaling"), tr("Strong scaling")});
  quantity_ = choice(tr("What is shown over devices"), {tr("Throughput"), tr("Step time"), tr("Efficiency")});
  QStringList counts;
  for (int n = 8; n <= 65536; n *= 2) counts << tr("up to %1 devices").arg(quantityText(Measure::devices, n));
  most_ = choice(tr("How far the curves go"), counts);
  most_->setCurrentIndex(5);  // 256
  compare_ = new StrategyMenu(box);
  line->addWidget(compare_);
  const auto check = [&](const QString& name, const QString& hint, bool on) {
    auto* button = new QCheckBox(name, box);
    button->setChecked(on);
    button->setToolTip(hint);
    line->addWidget(button);
    connect(button, &QCheckBox::toggled, this, &ScalingView::lookedAtOtherwise);
    return button;
  };
  log_devices_ = check(tr("log devices"), tr("Devices along a logarithmic axis"), true);
  log_values_ = check(tr("log values"), tr("Values along a logarithmic axis"), true);
  intervals_ = check(tr("intervals"), tr("Bands of 90 % around the scenario and the baseline"), true);
  measured_button_ = new QPushButton(tr("Measured…"), box);
  measured_button_->setToolTip(tr("Points of a file of `sibyl validate --save`"));
  line->addWidget(measured_button_);
  connect(compare_, &StrategyMenu::chosenChanged, this, [this] {
    emit viewStateChanged();
    refreshAgain();
  });
  connect(measured_button_, &QPushButton::clicked, this, &ScalingView::chooseMeasured);
  connect(quantity_, &QComboBox::currentIndexChanged, this, &ScalingView::lookedAtOtherwise);
  for (QComboBox* combo : {scaling_, most_})
    connect(combo, &QComboBox::currentIndexChanged, this, [this] {
      emit viewStateChanged();
      refreshAgain();
    });
  return box;
}

void ScalingView::lookedAtOtherwise() {
  emit viewStateChanged();
  if (answered()) redraw();
}

Scaling ScalingView::scaling() const { return scaling_->currentIndex() == 0 ? Scaling::weak : Scaling::strong; }
ScaleQuantity ScalingView::quantity() const { return static_cast<ScaleQuantity>(quantity_->currentIndex()); }

std::vector<ScalingSeries> ScalingView::wanted() const {
  std::vector<ScalingSeries> series = {{tr("Current"), current().study, current().study->strategy, {}}};
  if (baseline() && baseline()->study)
    series.push_back({tr("Baseline"), baseline()->study, baseline()->study->strategy, {}});
  for (SimpleStrategy& simple : simpleStrategies(*current().study, scaling()))
    if (compare_->chosen().contains(simple.key))
      series.push_back({simple.title, current().study, std::move(simple.strategy), {}});
  return series;
}

void ScalingView::refresh() {
  compare_->offer(simpleStrategies(*current().study, scaling()));
  readMeasured();
  askAll();
}

// One curve after the other, each shown when it is there. What was shown stays until the first has come.
void ScalingView::askAll() {
  std::vector<ScalingSeries> series = wanted();
  to_come_.assign(std::make_move_iterator(series.begin()), std::make_move_iterator(series.end()));
  all_ = to_come_.size();
  stopped_ = false;
  setWorking(true);
  askNext();
}

void ScalingView::stop() {
  if (!job_.busy()) return;
  job_.cancel();
  to_come_.clear();
  stopped_ = true;
  setWorking(false);
  redraw();
  emit settled();
}

void ScalingView::askNext() {
  const ScalingSeries& next = to_come_.front();
  const std::vector<int> counts = scalingCounts(*next.study, 8 << most_->currentIndex());
  const std::size_t before = (all_ - to_come_.size()) * counts.size(), total = all_ * counts.size();
  job_.ask(
      [study = next.study, strategy = next.strategy, counts, kind = scaling(), before, total](const Ticket& ticket) {
        std::size_t done = before;
        return scale(*study->graph, strategy, *study->cluster, counts, kind, [&](const ScalePoint&) {
          ticket.progress(++done, total);
          return !ticket.dropped();
        });
      },
      [this](std::vector<ScalePoint> points) {
        if (to_come_.size() == all_) series_.clear();
        series_.push_back(std::move(to_come_.front()));
        series_.back().points = std::move(points);
        to_come_.pop_front();
        setWorking(false);
        redraw();
        if (to_come_.empty())
          emit settled();
        else
          askNext();
      });
}

void ScalingView::addIdeal(const ScalingSeries& series) {
  const ScalePoint* first = first_of(series);
  if (!first) return;
  QVector<double> devices, values;
  for (const ScalePoint& point : series.points)
    devices << point.devices, values << ideal_value(*first, point.devices, scaling(), quantity());
  QCPGraph* graph = plot_->addGraph();
  graph->setData(devices, values, true);
  graph->setPen(QPen(plot_->quietColour(), 1, Qt::DashLine));
  graph->setName(tr("Ideal"));
  graph->addToLegend();
  plot_->explain(graph, [](int) { return tr("As if nothing were lost from the first point on"); });
}

void ScalingView::addBand(const ScalingSeries& series, const QColor& colour) {
  QVector<double> devices, low, high;
  for (const ScalePoint& point : series.points) {
    if (!point.prediction) continue;
    const Ranged r = value_of(point, quantity());
    devices << point.devices, low << r.low, high << r.high;
  }
  QCPGraph *lower = plot_->addGraph(), *upper = plot_->addGraph();
  lower->setData(devices, low, true);
  upper->setData(devices, high, true);
  QColor fill = colour;
  fill.setAlpha(48);
  for (QCPGraph* graph : {lower, upper}) graph->setPen(Qt::NoPen), graph->setSelectable(QCP::stNone);
  upper->setBrush(fill);
  upper->setChannelFillGraph(lower);
}

void ScalingView::addCurve(const ScalingSeries& series, const QColor& colour) {
  QVector<double> devices, values;
  std::vector<const ScalePoint*> shown;
  for (const ScalePoint& point : series.points) {
    if (!point.prediction) continue;
    devices << point.devices, values << value_of(point, quantity()).value;
    shown.push_back(&point);
  }
  QCPGraph* graph = plot_->addGraph();
  graph->setData(devices, values, true);
  graph->setPen(QPen(colour, 2));
  graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, colour, colour, 6));
  graph->setName(series.name);
  graph->addToLegend();
  plot_->explain(graph, [shown, series](int n) { return explanation(series, *shown[static_cast<std::size_t>(n)]); });
}

// At the lower edge: counts that cannot be run; around their point: those that memory does not hold.
void ScalingView::addFailures(const ScalingSeries& series, const QColor& colour) {
  QVector<double> devices, values, too_large, there;
  std::vector<const ScalePoint*> failed, large;
  for (const ScalePoint& point : series.points) {
    if (!point.prediction)
      devices << point.devices, values << plot_->yAxis->range().lower, failed.push_back(&point);
    else if (!point.prediction->fits)
      too_large << point.devices, there << value_of(point, quantity()).value, large.push_back(&point);
  }
  const auto add = [&](const QVector<double>& x, const QVector<double>& y, QCPScatterStyle::ScatterShape shape,
                       double size, const std::vector<const ScalePoint*>& points) {
    if (points.empty()) return;
    QCPGraph* graph = plot_->addGraph();
    graph->setData(x, y, true);
    graph->setLineStyle(QCPGraph::lsNone);
    graph->setScatterStyle(QCPScatterStyle(shape, QPen(colour, 2), Qt::NoBrush, size));
    plot_->explain(graph,
                   [points, series](int n) { return explanation(series, *points[static_cast<std::size_t>(n)]); });
  };
  add(devices, values, QCPScatterStyle::ssCross, 9, failed);
  add(too_large, there, QCPScatterStyle::ssCircle, 13, large);
}

void ScalingView::addMeasured() {
  if (!measured_ || measured_->empty() || quantity() == ScaleQuantity::efficiency) return;
  QVector<double> devices, values;
  std::vector<MeasuredPoint> points = *measured_;
  std::ranges::stable_sort(points, {}, &MeasuredPoint::devices);
  for (const MeasuredPoint& p : points) {
    devices << p.devices;
    values << measured_value(p.step_time, p.samples, quantity());
  }
  QCPGraph* graph = plot_->addGraph();
  graph->setData(devices, values, true);
  graph->setLineStyle(QCPGraph::lsNone);
  const QColor colour = seriesColour(measured_colour, palette());
  graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDiamond, QPen(colour, 2), Qt::NoBrush, 9));
  graph->setName(tr("Measured"));
  graph->addToLegend();
  plot_->explain(graph, [points](int n) {
    const MeasuredPoint& p = points[static_cast<std::size_t>(n)];
    return tr("Measured: %1\nstep time %2, spread %3")
        .arg(p.name, QString::fromStdString(to_string(p.step_time)), quantityText(Measure::share, p.spread));
  });
}

void ScalingView::redraw() {
  plot_->clear();
  plot_->setMeasure(plot_->xAxis, Measure::devices, log_devices_->isChecked());
  plot_->setMeasure(plot_->yAxis, measureOf(quantity()),
                    log_values_->isChecked() && quantity() != ScaleQuantity::efficiency);
  plot_->xAxis->setLabel(tr("Devices"));
  plot_->yAxis->setLabel(quantity_->currentText());
  const auto colour = [this](std::size_t n) {
    return seriesColour(static_cast<int>(n < measured_colour ? n : n + 1), palette());
  };
  if (!series_.empty()) addIdeal(series_.front());
  for (std::size_t n = 0; n < series_.size(); ++n) {
    if (intervals_->isChecked() && n < 2) addBand(series_[n], colour(n));
    addCurve(series_[n], colour(n));
  }
  addMeasured();
  plot_->rescaleAxes();
  if (plot_->xAxis->scaleType() == QCPAxis::stLogarithmic)
    plot_->xAxis->setRange(plot_->xAxis->range().lower / 1.15, plot_->xAxis->range().upper * 1.15);
  if (plot_->yAxis->scaleType() == QCPAxis::stLogarithmic)
    plot_->yAxis->setRange(plot_->yAxis->range().lower / 1.3, plot_->yAxis->range().upper * 1.3);
  else
    plot_->yAxis->setRange(0, plot_->yAxis->range().upper * 1.08);
  for (std::size_t n = 0; n < series_.size(); ++n) addFailures(series_[n], colour(n));
  notes_->setText(notes());
  notes_->setVisible(!notes_->text().isEmpty());
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

// Of each curve that has holes: where, and why the first.
QString ScalingView::notes() const {
  QStringList lines;
  for (const ScalingSeries& series : series_) {
    QStringList failed, large;
    const Error* why = nullptr;
    for (const ScalePoint& point : series.points) {
      const QString count = quantityText(Measure::devices, point.devices);
      if (!point.prediction) {
        failed << count;
        if (!why) why = &point.prediction.error();
      } else if (!point.prediction->fits) {
        large << count;
      }
    }
    if (why)
      lines
          << tr("× %1 cannot run on %2: %3").arg(series.name, failed.join(", "), QString::fromStdString(why->message));
    if (!large.isEmpty()) lines << tr("○ %1 does not fit in memory on %2").arg(series.name, large.join(", "));
  }
  if (!measured_) lines << sentence(measured_.error());
  if (stopped_) lines << stoppedText();
  return lines.join('\n');
}

void ScalingView::chooseMeasured() {
  const QString file =
      QFileDialog::getOpenFileName(this, tr("Measured runs"), measured_file_,
                                   tr("Results of sibyl validate (*.results.json *.json);;All files (*)"));
  if (!file.isEmpty()) loadMeasured(file);
}

void ScalingView::loadMeasured(const QString& file) {
  measured_file_ = file;
  emit viewStateChanged();
  if (!answered()) return;
  readMeasured();
  redraw();
}

void ScalingView::readMeasured() {
  measured_ = std::vector<MeasuredPoint>{};
  if (measured_file_.isEmpty()) return;
  const std::string file = measured_file_.toStdString();
  measured_ = read_file(file).and_then(
      [&](const std::string& json) { return measuredPoints(json, file, current().scenario.model); });
}

void ScalingView::renderCharts(QPainter& painter, const QSize& size) { plot_->render(painter, QRect(QPoint(), size)); }

std::optional<Table> ScalingView::table() const {
  if (series_.empty()) return {};
  return scalingTable(series_, scaling());
}

QJsonObject ScalingView::viewState() const {
  return {{"strong", scaling_->currentIndex() == 1},  {"quantity", quantity_->currentIndex()},
          {"most", 8 << most_->currentIndex()},       {"compared", QJsonArray::fromStringList(compare_->chosen())},
          {"log_devices", log_devices_->isChecked()}, {"log_values", log_values_->isChecked()},
          {"intervals", intervals_->isChecked()},     {"measured", measured_file_}};
}

void ScalingView::restoreViewState(const QJsonObject& state) {
  compare_->choose(state["compared"].toVariant().toStringList());
  measured_file_ = state["measured"].toString();
  scaling_->setCurrentIndex(state["strong"].toBool() ? 1 : 0);
  quantity_->setCurrentIndex(std::clamp(state["quantity"].toInt(), 0, quantity_->count() - 1));
  int index = 0;
  while (index + 1 < most_->count() && (8 << index) < state["most"].toInt(256)) ++index;
  most_->setCurrentIndex(index);
  log_devices_->setChecked(state["log_devices"].toBool(true));
  log_values_->setChecked(state["log_values"].toBool(true));
  intervals_->setChecked(state["intervals"].toBool(true));
}

}  // namespace sibyl::gui
