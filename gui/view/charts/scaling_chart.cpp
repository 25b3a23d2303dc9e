#include "gui/view/charts/scaling_chart.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "gui/view/colours.h"
#include "gui/view/words.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl::gui {
namespace {

constexpr int measured_colour = 1;

QString rangeText(const ScalePoint& point, ScaleQuantity quantity) {
  const Ranged r = value_of(point, quantity);
  const Measure measure = measureOf(quantity);
  return ScalingChart::tr("%1 (90 %: %2 to %3)")
      .arg(quantityText(measure, r.value), quantityText(measure, r.low), quantityText(measure, r.high));
}

QString explanation(const ScalingSeries& series, const ScalePoint& point) {
  QString text = series.name + ", " + QString::fromStdString(plural(point.devices, "device"));
  if (!point.prediction) return text + "\n" + sentence(point.prediction.error());
  const Prediction& p = *point.prediction;
  text += "\n" + ScalingChart::tr("step time %1\nthroughput %2\nefficiency %3\nbatch %4, held back by %5")
                     .arg(rangeText(point, ScaleQuantity::step_time), rangeText(point, ScaleQuantity::throughput),
                          rangeText(point, ScaleQuantity::efficiency), QString::fromStdString(grouped(p.global_batch)),
                          QString::fromStdString(p.bottleneck.name));
  if (!p.fits)
    text += "\n" + ScalingChart::tr("Does not fit: it needs %1 of %2")
                       .arg(QString::fromStdString(to_string(p.memory.needed())),
                            QString::fromStdString(to_string(p.memory_capacity)));
  return text;
}

const ScalePoint* first_of(const ScalingSeries& series) {
  const auto found = std::ranges::find_if(series.points, [](const ScalePoint& p) { return p.prediction.has_value(); });
  return found == series.points.end() ? nullptr : &*found;
}

const QString top_layer = QStringLiteral("emphasis");

void fillBand(const DrawnCurve& curve, int fill, int edge) {
  if (curve.high == nullptr) return;
  QColor inside = curve.colour, outline = curve.colour;
  inside.setAlpha(fill);
  outline.setAlpha(edge);
  curve.high->setBrush(inside);
  for (QCPGraph* graph : {curve.low, curve.high}) graph->setPen(edge > 0 ? QPen(outline, 1) : QPen(Qt::NoPen));
}

}  // namespace

// The first curve, which is the scenario's own where it is shown, lies above the others while none is emphasised.
void emphasise(Plot& plot, const std::vector<DrawnCurve>& curves, const QString& key) {
  constexpr int own = 44, other = 20, behind = 10, emphasised = 72, edge = 170;  // of 255
  for (const DrawnCurve& curve : curves) {
    const bool chosen = curve.key == key, top = key.isEmpty() ? &curve == &curves.front() : chosen;
    QPen pen = curve.line->pen();
    pen.setWidthF(chosen ? 3 : 2);
    curve.line->setPen(pen);
    curve.line->setLayer(top ? top_layer : QStringLiteral("main"));
    if (key.isEmpty())
      fillBand(curve, curve.own ? own : other, 0);
    else
      fillBand(curve, chosen ? emphasised : behind, chosen ? edge : 0);
  }
  plot.replot(QCustomPlot::rpQueuedReplot);
}

ScalingChart::ScalingChart(Plot& plot, const ScalingLook& look) : plot_(plot), look_(look) {
  if (plot_.layer(top_layer) == nullptr) plot_.addLayer(top_layer, plot_.layer(QStringLiteral("main")));
}

// Seven colours, for one is that of measured points; then again, of which lines are dashed.
QPen ScalingChart::penOf(const ScalingSeries& series) const {
  constexpr int colours = 7;
  const int n = series.colour % colours;
  return {seriesColour(n < measured_colour ? n : n + 1, plot_.palette()), 2,
          series.colour < colours ? Qt::SolidLine : Qt::DashDotLine};
}

std::vector<DrawnCurve> ScalingChart::draw(const std::vector<ScalingSeries>& series,
                                           const std::vector<MeasuredPoint>& measured) {
  plot_.clear();
  plot_.setMeasure(plot_.xAxis, Measure::devices, look_.log_devices);
  plot_.setMeasure(plot_.yAxis, measureOf(look_.quantity),
                   look_.log_values && look_.quantity != ScaleQuantity::efficiency);
  const auto first = std::ranges::find_if(series, [](const ScalingSeries& s) { return first_of(s) != nullptr; });
  if (first != series.end()) addIdeal(*first);
  std::vector<DrawnCurve> curves;
  for (const ScalingSeries& each : series)
    if (!each.failure) curves.push_back(addCurve(each));
  if (look_.quantity != ScaleQuantity::efficiency) addMeasured(measured);
  setRanges();
  for (const ScalingSeries& each : series) addFailures(each);
  return curves;
}

void ScalingChart::setRanges() {
  plot_.rescaleAxes();
  QCPAxis &x = *plot_.xAxis, &y = *plot_.yAxis;
  if (x.scaleType() == QCPAxis::stLogarithmic) x.setRange(x.range().lower / 1.15, x.range().upper * 1.15);
  if (y.scaleType() == QCPAxis::stLogarithmic)
    y.setRange(y.range().lower / 1.3, y.range().upper * 1.3);
  else
    y.setRange(0, y.range().upper * 1.08);
}

void ScalingChart::addIdeal(const ScalingSeries& series) {
  const ScalePoint* first = first_of(series);
  if (!first) return;
  QVector<double> devices, values;
  for (const ScalePoint& point : series.points)
    devices << point.devices, values << ideal_value(*first, point.devices, look_.scaling, look_.quantity);
  QCPGraph* graph = plot_.addGraph();
  graph->setData(devices, values, true);
  graph->setPen(QPen(plot_.quietColour(), 1, Qt::DashLine));
  graph->setName(tr("Ideal"));
  graph->addToLegend();
  plot_.explain(graph, [](int) { return tr("As if nothing were lost from the first point on"); });
}

void ScalingChart::explain(QCPGraph* graph, const ScalingSeries& series, std::vector<const ScalePoint*> points) {
  plot_.explain(graph, [points = std::move(points), series](int n) {
    return explanation(series, *points[static_cast<std::size_t>(n)]);
  });
}

void ScalingChart::addBand(const ScalingSeries& series, DrawnCurve& curve) {
  QVector<double> devices, low, high;
  std::vector<const ScalePoint*> shown;
  for (const ScalePoint& point : series.points) {
    if (!point.prediction) continue;
    const Ranged r = value_of(point, look_.quantity);
    devices << point.devices, low << r.low, high << r.high;
    shown.push_back(&point);
  }
  curve.low = plot_.addGraph();
  curve.high = plot_.addGraph();
  curve.low->setData(devices, low, true);
  curve.high->setData(devices, high, true);
  curve.high->setChannelFillGraph(curve.low);
  for (QCPGraph* graph : {curve.low, curve.high}) explain(graph, series, shown);
}

DrawnCurve ScalingChart::addCurve(const ScalingSeries& series) {
  DrawnCurve curve{series.key, series.own, penOf(series).color()};
  if (look_.intervals) addBand(series, curve);
  QVector<double> devices, values;
  std::vector<const ScalePoint*> shown;
  for (const ScalePoint& point : series.points) {
    if (!point.prediction) continue;
    devices << point.devices, values << value_of(point, look_.quantity).value;
    shown.push_back(&point);
  }
  const QPen pen = penOf(series);
  QCPGraph* graph = plot_.addGraph();
  graph->setData(devices, values, true);
  graph->setPen(pen);
  graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, pen.color(), pen.color(), 6));
  graph->setName(series.name);
  graph->addToLegend();
  explain(graph, series, std::move(shown));
  curve.line = graph;
  return curve;
}

// A little above the lower edge, which would cut a cross in two.
double ScalingChart::bottom() const {
  constexpr double above = 0.015;  // of the axis
  const QCPRange range = plot_.yAxis->range();
  if (plot_.yAxis->scaleType() == QCPAxis::stLogarithmic)
    return range.lower * std::pow(range.upper / range.lower, above);
  return range.lower + above * range.size();
}

// At the lower edge: counts that cannot be run; around their point: those that memory does not hold.
void ScalingChart::addFailures(const ScalingSeries& series) {
  QVector<double> devices, values, too_large, there;
  std::vector<const ScalePoint*> failed, large;
  for (const ScalePoint& point : series.points) {
    if (!point.prediction)
      devices << point.devices, values << bottom(), failed.push_back(&point);
    else if (!point.prediction->fits)
      too_large << point.devices, there << value_of(point, look_.quantity).value, large.push_back(&point);
  }
  const auto add = [&](const QVector<double>& x, const QVector<double>& y, QCPScatterStyle::ScatterShape shape,
                       double size, const std::vector<const ScalePoint*>& points) {
    if (points.empty()) return;
    QCPGraph* graph = plot_.addGraph();
    graph->setData(x, y, true);
    graph->setLineStyle(QCPGraph::lsNone);
    graph->setScatterStyle(QCPScatterStyle(shape, QPen(penOf(series).color(), 2), Qt::NoBrush, size));
    explain(graph, series, points);
  };
  add(devices, values, QCPScatterStyle::ssCross, 9, failed);
  add(too_large, there, QCPScatterStyle::ssCircle, 13, large);
}

// What emulated ranks ran was not measured: their messages were real, their computing was not.
void ScalingChart::addMeasured(const std::vector<MeasuredPoint>& measured) {
  std::vector<MeasuredPoint> real, emulated;
  for (const MeasuredPoint& point : measured) (point.emulated.isEmpty() ? real : emulated).push_back(point);
  addPoints(std::move(real), tr("Measured"), QCPScatterStyle::ssDiamond);
  addPoints(std::move(emulated), tr("Emulated devices"), QCPScatterStyle::ssSquare);
}

void ScalingChart::addPoints(std::vector<MeasuredPoint> points, const QString& name,
                             QCPScatterStyle::ScatterShape shape) {
  if (points.empty()) return;
  std::ranges::stable_sort(points, {}, &MeasuredPoint::devices);
  QVector<double> devices, values;
  for (const MeasuredPoint& p : points) {
    devices << p.devices;
    values << measured_value(p.step_time, p.samples, look_.quantity);
  }
  QCPGraph* graph = plot_.addGraph();
  graph->setData(devices, values, true);
  graph->setLineStyle(QCPGraph::lsNone);
  const QColor colour = seriesColour(measured_colour, plot_.palette());
  constexpr double size = 9;
  graph->setScatterStyle(QCPScatterStyle(shape, QPen(colour, 2), Qt::NoBrush, size));
  graph->setName(name);
  graph->addToLegend();
  plot_.explain(graph, [points, name](int n) {
    const MeasuredPoint& p = points[static_cast<std::size_t>(n)];
    QString text =
        tr("%1: %2\nstep time %3, spread %4")
            .arg(name, p.name, QString::fromStdString(to_string(p.step_time)), quantityText(Measure::share, p.spread));
    if (!p.otherwise.isEmpty()) text += "\n" + tr("It trains otherwise than the scenario: %1").arg(p.otherwise);
    if (p.emulated.isEmpty()) return text;
    return text + "\n" +
           tr("The devices of %1 were emulated: they computed nothing and took their time; messages were real")
               .arg(p.emulated);
  });
}

// Of each curve that has holes: where, and why the first.
QStringList ScalingChart::notes(const std::vector<ScalingSeries>& series) {
  QStringList lines;
  for (const ScalingSeries& each : series) {
    if (each.failure) lines << tr("× %1 cannot be read: %2").arg(each.name, sentence(*each.failure));
    QStringList failed, large;
    const Error* why = nullptr;
    for (const ScalePoint& point : each.points) {
      const QString count = quantityText(Measure::devices, point.devices);
      if (!point.prediction) {
        failed << count;
        if (!why) why = &point.prediction.error();
      } else if (!point.prediction->fits) {
        large << count;
      }
    }
    if (why)
      lines << tr("× %1 cannot run on %2: %3").arg(each.name, failed.join(", "), QString::fromStdString(why->message));
    if (!large.isEmpty()) lines << tr("○ %1 does not fit in memory on %2").arg(each.name, large.join(", "));
  }
  return lines;
}

}  // namespace sibyl::gui
