#include "gui/view/charts/stacked_bars.h"

#include <algorithm>
#include <map>

#include "gui/view/colours.h"

namespace sibyl::gui {
namespace {

constexpr double height = 0.56, thin = 0.14, thin_offset = 0.4;  // of a row
constexpr double narrow_axis = 500;                              // pixels: in a window of 960
constexpr double worth_naming = 0.07;                            // of the axis

QString part_text(const BarRow& row, const BarPart& part, Measure measure, bool beside) {
  QString text = row.name + "\n" + part.title + ": " + quantityText(measure, part.value);
  if (!beside && lengthOf(row) > 0)
    text += QObject::tr(" (%1 of all)").arg(quantityText(Measure::share, part.value / lengthOf(row)));
  return part.meaning.isEmpty() ? text : text + "\n" + part.meaning;
}

class Drawing {
 public:
  Drawing(Plot& plot, const std::vector<BarRow>& rows, Measure measure, double reach)
      : plot_(plot), rows_(rows), measure_(measure), reach_(std::max(reach, 1e-12)) {}

  void draw() {
    for (const BarRow& row : rows_) reach_ = std::max(reach_, lengthOf(row) / (1 - shareOf(row.note)));
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const double y = -static_cast<double>(r);
      double at = 0;
      for (const BarPart& part : rows_[r].parts) {
        bar(r, part, y, at, height, false);
        at += part.value;
      }
      if (!rows_[r].note.isEmpty()) addNote(at, y, rows_[r].note);
      at = 0;
      for (const BarPart& part : rows_[r].beside) {
        bar(r, part, y - thin_offset, at, thin, true);
        at += part.value;
      }
    }
    axes();
    for (const QString& title : titlesInOrder()) first_.at(title)->addToLegend();
  }

 private:
  // Of the axis, that a note at a bar's end takes.
  [[nodiscard]] double shareOf(const QString& note) const {
    constexpr double most = 0.5;
    return std::min(most, 0.02 + plot_.fontMetrics().horizontalAdvance(note) / narrow_axis);
  }
  // As parts follow each other in the rows, of which some have no part of a kind: each title after the one before it.
  [[nodiscard]] std::vector<QString> titlesInOrder() const {
    std::vector<QString> titles;
    for (const BarRow& row : rows_) {
      std::ptrdiff_t next = 0;
      for (const auto* parts : {&row.parts, &row.beside})
        for (const BarPart& part : *parts) {
          if (part.value <= 0) continue;
          auto place = std::ranges::find(titles, part.title);
          if (place == titles.end()) place = titles.insert(titles.begin() + next, part.title);
          next = place - titles.begin() + 1;
        }
    }
    return titles;
  }

  // Above a limit's line, which may run through it.
  void addNote(double at, double y, const QString& note) {
    QCPItemText* text = plot_.addText(at, y, note, Qt::AlignLeft | Qt::AlignVCenter, plot_.textColour());
    text->setBrush(plot_.palette().color(QPalette::Base));
    text->setLayer(QStringLiteral("axes"));
  }

  void bar(std::size_t row, const BarPart& part, double y, double from, double width, bool beside) {
    if (part.value <= 0) return;
    const QColor colour = colourOf(part.key, plot_.palette());
    auto* bars = new QCPBars(plot_.yAxis, plot_.xAxis);
    bars->setWidth(width);
    bars->setBaseValue(from);
    bars->setData({y}, {part.value}, true);
    bars->setName(part.title);
    bars->setPen(QPen(plot_.palette().color(QPalette::Base), 1));
    const bool hatched = beside || part.hatched;
    bars->setBrush(hatched ? QBrush(colour, hatching) : QBrush(colour));
    if (hatched) bars->setPen(QPen(colour, 1));
    const QString text = part_text(rows_[row], part, measure_, beside);
    plot_.explain(bars, [text](int) { return text; });
    first_.emplace(part.title, bars);
    if (!beside && part.value > worth_naming * reach_)
      plot_.addText(from + part.value / 2, y, quantityText(measure_, part.value), Qt::AlignCenter,
                    part.hatched ? plot_.textColour() : textOn(colour));
  }

  void axes() {
    auto names = QSharedPointer<QCPAxisTickerText>::create();
    for (std::size_t r = 0; r < rows_.size(); ++r) names->addTick(-static_cast<double>(r), rows_[r].name);
    plot_.yAxis->setTicker(names);
    plot_.yAxis->setScaleType(QCPAxis::stLinear);
    plot_.yAxis->setRange(-static_cast<double>(rows_.size()) + 0.3, 0.5);
    plot_.yAxis->setTickLength(0);
    plot_.yAxis->setSubTicks(false);
    plot_.yAxis->grid()->setVisible(false);
    plot_.setMeasure(plot_.xAxis, measure_);
    plot_.xAxis->setRange(0, reach_);
  }

  Plot& plot_;
  const std::vector<BarRow>& rows_;
  Measure measure_;
  double reach_;
  std::map<QString, QCPBars*> first_;  // of each title
};

}  // namespace

double lengthOf(const BarRow& row) {
  double total = 0;
  for (const BarPart& part : row.parts) total += part.value;
  return total;
}

void drawStackedBars(Plot& plot, const std::vector<BarRow>& rows, Measure measure, double reach) {
  plot.clear();
  plot.setRows(static_cast<int>(rows.size()));
  Drawing(plot, rows, measure, reach).draw();
}

}  // namespace sibyl::gui
