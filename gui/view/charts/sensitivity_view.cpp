#include "gui/view/charts/sensitivity_view.h"

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "gui/view/charts/stacked_bars.h"
#include "gui/view/colours.h"

namespace sibyl::gui {
namespace {

constexpr double visible_effect = 5e-4;  // 0.05 %
constexpr int twice_colour = 0, half_colour = 1;

// "Memory bandwidth (2.04 TB/s)"
QString label(const Sensitivity& input) {
  const QString title = titled(input.title);
  return input.now.empty() ? title : QStringLiteral("%1 (%2)").arg(title, QString::fromStdString(input.now));
}

QString meaning(const Sensitivity& input) {
  QString text = titled(input.title) + ": " + QString::fromStdString(input.says);
  if (!input.now.empty()) text += "\n" + QObject::tr("Now: %1").arg(QString::fromStdString(input.now));
  return text + "\n" + QObject::tr("Command line: --set %1=…").arg(QString::fromStdString(input.name));
}

QString explanation(const Sensitivity& input, const Variation& variation, const Evaluation& now) {
  QString text = meaning(input) + "\n" + QString::fromStdString(variation.setting + ": ");
  if (!variation.evaluation) return text + sentence(variation.evaluation.error());
  const Evaluation& e = *variation.evaluation;
  text += QObject::tr("step time %1 instead of %2, %3 for a sample")
              .arg(QString::fromStdString(time_words(e)), QString::fromStdString(to_string(now.step_time)),
                   quantityText(Measure::change, variation.change));
  return e.fits ? text : text + "\n" + QObject::tr("Does not fit in memory.");
}

}  // namespace

Tornado tornadoOf(const Sensitivities& all) {
  Tornado tornado;
  for (const Sensitivity& input : all.inputs) {
    const bool varied = input.twice.evaluation || input.half.evaluation;
    (!varied                            ? tornado.not_varied
     : input.effect() >= visible_effect ? tornado.shown
                                        : tornado.without_effect)
        .push_back(&input);
  }
  return tornado;
}

SensitivityView::SensitivityView(QWidget* parent) : ChartView(parent) {
  says_ = new QLabel(tr("How much longer or shorter a sample takes, with each input alone twice and half as good "
                        "(batch, micro-batches and bucket: as large)"),
                     this);
  says_->setWordWrap(true);
  plot_ = new Plot(this);
  plot_->setAccessibleName(tr("What each input is worth"));
  rest_ = new QLabel(this);
  rest_->setWordWrap(true);
  rest_->setTextFormat(Qt::PlainText);
  body()->addWidget(makeProgress(job_, tr("Progress of the sensitivity list"), this));
  body()->addWidget(says_);
  body()->addWidget(plot_, 1);
  body()->addWidget(rest_);
  connect(&job_, &LatestSignals::busyChanged, this, &SensitivityView::setWorking);
  connect(&job_, &LatestSignals::busyChanged, this, &View::busyChanged);
}

void SensitivityView::refresh() {
  if (asked_ == current().study) return redraw();
  asked_ = current().study;
  job_.ask(
      [study = asked_, model = current().report->model, cluster = current().report->cluster](const Ticket& ticket) {
        const auto progress = [&](std::size_t done, std::size_t total) { ticket.progress(done, total); };
        return sensitivities(*study->graph, study->strategy, *study->cluster, {progress, ticket.cancelled()})
            .map([&](Sensitivities result) {
              return SensitivityReport{model, cluster, std::move(result)};
            });
      },
      [this](Result<SensitivityReport> report) { deliver(std::move(report)); },
      [this](const Error& error) { deliver(Failure(error)); });
}

void SensitivityView::stop() {
  if (!job_.busy()) return;
  job_.cancel();
  deliver(fail(stoppedText().toStdString()));
}

void SensitivityView::deliver(Result<SensitivityReport> report) {
  report_ = std::move(report);
  tornado_ = report_ ? tornadoOf(report_->result) : Tornado{};
  redraw();
  emit settled();
}

void SensitivityView::addBar(double y, const Sensitivity& input, const Variation& variation, const QString& name,
                             const QColor& colour) {
  auto* bar = new QCPBars(plot_->yAxis, plot_->xAxis);
  bar->setWidth(y == std::round(y) ? 0.6 : 0.3);
  bar->setData({y}, {variation.change}, true);
  bar->setPen(Qt::NoPen);
  const bool fits = !variation.evaluation || variation.evaluation->fits;
  bar->setBrush(fits ? QBrush(colour) : QBrush(colour, hatching));
  if (!fits) bar->setPen(QPen(colour, 1));
  bar->setName(name);
  const QString text = explanation(input, variation, report_->result.now);
  plot_->explain(bar, [text](int) { return text; });
  if (plot_->legend->itemCount() < 2) bar->addToLegend();
  if (std::abs(variation.change) < visible_effect) return;
  const bool left = variation.change < 0;
  const QString change = quantityText(Measure::change, variation.change);
  plot_->addText(variation.change, y, fits ? change : tr("%1, does not fit").arg(change),
                 (left ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter, plot_->textColour());
}

void SensitivityView::redraw() {
  plot_->clear();
  if (!report_) {
    rest_->setText(asked_ && !job_.busy() ? sentence(report_.error()) : QString());
    plot_->replot(QCustomPlot::rpQueuedReplot);
    return;
  }
  drawBars();
  rest_->setText(restText());
  rest_->setVisible(!rest_->text().isEmpty());
}

void SensitivityView::drawBars() {
  plot_->setRows(static_cast<int>(tornado_.shown.size()));
  auto names = QSharedPointer<QCPAxisTickerText>::create();
  double least = 0, most = 0;
  for (std::size_t n = 0; n < tornado_.shown.size(); ++n) {
    const Sensitivity& input = *tornado_.shown[n];
    const double y = -static_cast<double>(n);
    names->addTick(y, label(input));
    // Side by side where one would cover the other.
    const double apart = input.twice.change * input.half.change > 0 ? 0.15 : 0;
    addBar(y + apart, input, input.twice, tr("Twice as good, or as large"), seriesColour(twice_colour, palette()));
    addBar(y - apart, input, input.half, tr("Half as good, or as large"), seriesColour(half_colour, palette()));
    least = std::min({least, input.twice.change, input.half.change});
    most = std::max({most, input.twice.change, input.half.change});
  }
  plot_->yAxis->setTicker(names);
  plot_->yAxis->setRange(-static_cast<double>(tornado_.shown.size()) + 0.4, 0.6);
  plot_->yAxis->setTickLength(0);
  plot_->yAxis->setSubTicks(false);
  plot_->yAxis->grid()->setVisible(false);
  plot_->setMeasure(plot_->xAxis, Measure::change);
  const double room = 0.16 * std::max(most - least, 1e-3);  // for what stands at the bars' ends
  plot_->xAxis->setRange(least - room, most + room);
  plot_->explainElsewhere([this](const QPointF& pixel) { return explanationAt(pixel); });
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

// On the names beside the bars, and in the empty part of a row.
QString SensitivityView::explanationAt(const QPointF& pixel) const {
  const QRect axes = plot_->axisRect()->rect();
  if (pixel.y() < axes.top() || pixel.y() > axes.bottom()) return {};
  const double row = std::round(-plot_->yAxis->pixelToCoord(pixel.y()));
  if (row < 0 || row >= static_cast<double>(tornado_.shown.size())) return {};
  return meaning(*tornado_.shown[static_cast<std::size_t>(row)]);
}

QString SensitivityView::restText() const {
  QStringList lines;
  const auto add = [&](const QString& words, const std::vector<const Sensitivity*>& inputs) {
    QStringList titles;
    for (const Sensitivity* input : inputs) titles << QString::fromStdString(input->title);
    if (!titles.isEmpty()) lines << words.arg(titles.join(", "));
  };
  add(tr("No effect here: %1"), tornado_.without_effect);
  add(tr("Cannot be varied here: %1"), tornado_.not_varied);
  return lines.join('\n');
}

void SensitivityView::renderCharts(QPainter& painter, const QSize& size) {
  plot_->render(painter, QRect(QPoint(), size));
}

std::optional<Table> SensitivityView::chartTable() const {
  if (!report_) return {};
  return to_table(*report_);
}

}  // namespace sibyl::gui
