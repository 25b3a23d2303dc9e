#include "gui/view/charts/plot.h"

#include <QFontInfo>
#include <QPicture>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/quantity.h"
#include "gui/view/colours.h"
#include "oracle/report/format.h"

namespace sibyl::gui {
namespace {

// "5.00 GiB" -> "5 GiB": a tick needs no more digits than tell it from the next.
QString withoutZeros(const QString& text) {
  const qsizetype end = text.indexOf(' ');
  QString number = end < 0 ? text : text.left(end);
  if (number.contains('.')) {
    while (number.endsWith('0')) number.chop(1);
    if (number.endsWith('.')) number.chop(1);
  }
  return end < 0 ? number : number + text.mid(end);
}

QString tickText(Measure measure, double value, double size) {
  if (std::abs(value) < 1e-9 * size) return QStringLiteral("0");
  return withoutZeros(quantityText(measure, value));
}

class LinearTicker : public QCPAxisTicker {
 public:
  explicit LinearTicker(Measure measure) : measure_(measure) {}

 protected:
  // Whole devices; powers of two of bytes.
  double getTickStep(const QCPRange& range) override {
    size_ = range.size();
    if (measure_ == Measure::devices) return std::max(1.0, QCPAxisTicker::getTickStep(range));
    if (measure_ == Measure::bytes) return std::exp2(std::round(std::log2(std::max(1.0, size_ / tickCount()))));
    return QCPAxisTicker::getTickStep(range);
  }
  int getSubTickCount(double step) override {
    return measure_ == Measure::bytes ? 1 : QCPAxisTicker::getSubTickCount(step);
  }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override { return tickText(measure_, tick, size_); }

 private:
  Measure measure_;
  double size_ = 1;
};

class LogarithmicTicker : public QCPAxisTickerLog {
 public:
  explicit LogarithmicTicker(Measure measure) : measure_(measure) {
    if (measure != Measure::devices) return;
    setLogBase(2);
    setSubTickCount(0);
    setTickCount(16);
  }

 protected:
  QString getTickLabel(double tick, const QLocale&, QChar, int) override { return tickText(measure_, tick, 0); }

 private:
  Measure measure_;
};

}  // namespace

QString quantityText(Measure measure, double value) {
  const auto text = [](const std::string& s) { return QString::fromStdString(s); };
  switch (measure) {
    case Measure::seconds: return text(to_string(Seconds{value}));
    case Measure::bytes: return text(to_string(Bytes{value}));
    case Measure::samples_per_second: return text(samples_per_second(value));
    case Measure::share: return text(percent(value));
    case Measure::change: return text(signed_percent(value));
    case Measure::devices: return text(grouped(std::llround(value)));
    case Measure::amount: return value < 1000 ? QString::number(value, 'g', 3) : text(grouped(std::llround(value)));
  }
  return {};
}

Plot::Plot(QWidget* parent) : QCustomPlot(parent) {
  setAutoAddPlottableToLegend(false);
  setMouseTracking(true);
  setMinimumSize(160, 8 * fontMetrics().height());
  // The legend above what it names.
  axisRect()->insetLayout()->take(legend);
  plotLayout()->insertRow(0);
  plotLayout()->addElement(0, 0, legend);
  plotLayout()->setRowStretchFactor(0, 0.001);
  legend->setVisible(true);
  legend->setBorderPen(Qt::NoPen);
  legend->setMargins({0, 0, 0, 4});
  constexpr int apart = 16;
  legend->setColumnSpacing(apart);
  // Of its own it is no wider than its entries, and without any would leave the axes no room either.
  legend->setMaximumSize(100000, 100000);
  connect(this, &QCustomPlot::beforeReplot, this, [this] {
    wrapLegend(width());
    makeRoom();
  });
  restyle();
}

QColor Plot::quietColour() const { return mixed(palette().color(QPalette::Base), textColour(), 0.6); }

void Plot::styleAxis(QCPAxis* axis, const QFont& font) {
  const QColor base = palette().color(QPalette::Base);
  const QColor line = mixed(base, textColour(), 0.35), grid = mixed(base, textColour(), 0.12);
  axis->setBasePen(QPen(line, 1));
  axis->setTickPen(QPen(line, 1));
  axis->setSubTickPen(QPen(line, 1));
  axis->setTickLabelFont(font);
  axis->setLabelFont(font);
  axis->setTickLabelColor(quietColour());
  axis->setLabelColor(textColour());
  axis->grid()->setPen(QPen(grid, 1, Qt::SolidLine));
  axis->grid()->setZeroLinePen(QPen(mixed(base, textColour(), 0.3), 1));
}

void Plot::restyle() {
  setBackground(QBrush(palette().color(QPalette::Base)));
  // In pixels, so that a figure looks the same on devices of any resolution.
  QFont own = font();
  own.setPixelSize(QFontInfo(font()).pixelSize());
  for (QCPAxis* axis : {xAxis, yAxis, xAxis2, yAxis2}) styleAxis(axis, own);
  legend->setFont(own);
  legend->setTextColor(textColour());
  legend->setBrush(Qt::NoBrush);
  legend->setIconSize(14, QFontMetrics(own).height() + 3);  // as high as a line, or its letters are cut
}

void Plot::clear() {
  explained_.clear();
  elsewhere_ = nullptr;
  legend->clearItems();
  clearItems();
  clearPlottables();
}

void Plot::setMeasure(QCPAxis* axis, Measure measure, bool logarithmic) {
  axis->setScaleType(logarithmic ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
  if (logarithmic)
    axis->setTicker(QSharedPointer<QCPAxisTicker>(new LogarithmicTicker(measure)));
  else
    axis->setTicker(QSharedPointer<QCPAxisTicker>(new LinearTicker(measure)));
}

void Plot::explain(QCPAbstractPlottable* plottable, std::function<QString(int)> text) {
  explained_.insert(plottable, std::move(text));
}

void Plot::explainElsewhere(std::function<QString(const QPointF&)> text) { elsewhere_ = std::move(text); }

QString Plot::explanationAt(const QPointF& pixel) const {
  int n = 0;
  if (QCPAbstractPlottable* plottable = plottableAt(pixel, false, &n))
    if (const auto found = explained_.find(plottable); found != explained_.end()) return (*found)(n);
  return elsewhere_ ? elsewhere_(pixel) : QString();
}

QCPItemText* Plot::addText(double x, double y, const QString& text, Qt::Alignment alignment, const QColor& colour) {
  auto* item = new QCPItemText(this);
  item->position->setCoords(x, y);
  item->setPositionAlignment(alignment);
  item->setText(text);
  item->setFont(legend->font());
  item->setColor(colour);
  item->setPadding({4, 1, 4, 1});
  return item;
}

void Plot::addLimit(QCPAxis* axis, double value, const QString& name, const QColor& colour) {
  const bool across = axis->orientation() == Qt::Vertical;  // a horizontal line
  auto* line = new QCPItemLine(this);
  for (QCPItemPosition* end : {line->start, line->end}) {
    end->setTypeX(across ? QCPItemPosition::ptAxisRectRatio : QCPItemPosition::ptPlotCoords);
    end->setTypeY(across ? QCPItemPosition::ptPlotCoords : QCPItemPosition::ptAxisRectRatio);
  }
  line->start->setCoords(across ? 0 : value, across ? value : 0);
  line->end->setCoords(across ? 1 : value, across ? value : 1);
  line->setPen(QPen(colour, 1.5, Qt::DashLine));
  // Above the axes, where it covers nothing, and to the line's left unless there is no room.
  constexpr double room = 0.25;  // of the axis
  const bool at_the_left = !across && value - axis->range().lower < room * axis->range().size();
  QCPItemText* text =
      addText(0, 0, name, (across || !at_the_left ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignBottom, colour);
  text->setClipToAxisRect(false);
  text->position->setTypeX(across ? QCPItemPosition::ptAxisRectRatio : QCPItemPosition::ptPlotCoords);
  text->position->setTypeY(across ? QCPItemPosition::ptPlotCoords : QCPItemPosition::ptAxisRectRatio);
  text->position->setCoords(across ? 1 : value, across ? value : 0);
}

void Plot::addCorner(const QString& text, const QColor& colour) {
  QCPItemText* item = addText(0, 0, text, Qt::AlignRight | Qt::AlignBottom, colour);
  item->setClipToAxisRect(false);
  item->position->setType(QCPItemPosition::ptAxisRectRatio);
  item->position->setCoords(1, 0);
}

// As many names side by side as there is room for, each column as wide as its widest.
void Plot::wrapLegend(int width) {
  const QFontMetrics metrics(legend->font());
  QVector<int> names;
  for (int i = 0; i < legend->itemCount(); ++i)
    if (auto* item = qobject_cast<QCPPlottableLegendItem*>(legend->item(i)))
      names << metrics.horizontalAdvance(item->plottable()->name());
  const int beside = legend->iconSize().width() + legend->iconTextPadding() + legend->columnSpacing();
  const auto fits = [&](int columns) {
    QVector<int> widest(columns, 0);
    for (int i = 0; i < names.size(); ++i) widest[i % columns] = std::max(widest[i % columns], names[i]);
    constexpr int margins = 40;
    return std::accumulate(widest.begin(), widest.end(), columns * beside) <= width - margins;
  };
  const int count = std::max<int>(1, static_cast<int>(names.size()));
  int columns = count;
  while (columns > 1 && !fits(columns)) --columns;
  // In as many lines, lines of the same length, or a long name in the second would spread the first.
  const int lines = (count + columns - 1) / columns, even = (count + lines - 1) / lines;
  if (fits(even)) columns = even;
  legend->setVisible(legend->itemCount() > 0);
  legend->setWrap(columns);
  legend->setFillOrder(QCPLayoutGrid::foColumnsFirst, true);
  // Side by side from the left: what is left over is the last column's.
  for (int column = 0; column < legend->columnCount(); ++column)
    legend->setColumnStretchFactor(column, column + 1 < legend->columnCount() ? 1e-3 : 1);
}

// A plot that is too low would cut the legend's letters, and bars would be thinner than what is written on them.
void Plot::makeRoom() {
  constexpr double of_a_row = 1.8, of_axes = 3, least = 5;  // lines of text
  const double line = QFontMetrics(legend->font()).height();
  const double legend_height = legend->itemCount() > 0 ? legend->minimumOuterSizeHint().height() : 0;
  setMinimumHeight(static_cast<int>(legend_height + line * (of_axes + std::max(least, of_a_row * rows_))));
}

void Plot::render(QPainter& painter, const QRect& rectangle) {
  wrapLegend(rectangle.width());
  QPicture picture;
  QCPPainter vectors;
  vectors.begin(&picture);
  toPainter(&vectors, rectangle.width(), rectangle.height());
  vectors.end();
  painter.drawPicture(rectangle.topLeft(), picture);
  wrapLegend(width());
}

void Plot::mouseMoveEvent(QMouseEvent* event) {
  QCustomPlot::mouseMoveEvent(event);
  const QString text = event->buttons() == Qt::NoButton ? explanationAt(event->position()) : QString();
  if (text.isEmpty())
    QToolTip::hideText();
  else
    QToolTip::showText(event->globalPosition().toPoint(), text, this);
}

void Plot::leaveEvent(QEvent* event) {
  QToolTip::hideText();
  QCustomPlot::leaveEvent(event);
  emit left();
}

void Plot::mousePressEvent(QMouseEvent* event) {
  pressed_at_ = event->position().toPoint();
  QCustomPlot::mousePressEvent(event);
}

void Plot::mouseReleaseEvent(QMouseEvent* event) {
  QCustomPlot::mouseReleaseEvent(event);
  constexpr int still = 4;
  const QPoint at = event->position().toPoint();
  if (event->button() == Qt::LeftButton && (at - pressed_at_).manhattanLength() <= still) emit clicked(at);
}

}  // namespace sibyl::gui
