// The look and manners that all charts share: fonts, grid and colours of the palette, axes that read as people write
// quantities, a legend above, and what the pointer rests on explained beside it.
#pragma once

// Its header says foreach, which is not defined here.
#ifdef QT_NO_FOREACH
#define foreach(variable, container) for (variable : container)
#endif
#include <qcustomplot.h>
#ifdef QT_NO_FOREACH
#undef foreach
#endif

#include <QHash>
#include <functional>

namespace sibyl::gui {

// What an axis measures, and how a value of it is written (base/quantity.h).
enum class Measure { seconds, bytes, samples_per_second, share, change, devices, amount };
QString quantityText(Measure measure, double value);  // "12.3 ms"

class Plot : public QCustomPlot {
  Q_OBJECT

 signals:
  void left();                        // the pointer is elsewhere
  void clicked(const QPoint& pixel);  // and not dragged

 public:
  explicit Plot(QWidget* parent = nullptr);

  // Takes all curves, bars and texts away; axes and style stay.
  void clear();
  // How values lie along an axis. A logarithmic one of devices has a line at every doubling.
  void setMeasure(QCPAxis* axis, Measure measure, bool logarithmic = false);
  // What is said where the pointer is on the plottable's n-th value.
  void explain(QCPAbstractPlottable* plottable, std::function<QString(int n)> text);
  // What is said where the pointer is on nothing else, in pixels.
  void explainElsewhere(std::function<QString(const QPointF& pixel)> text);
  // What would be said there; empty: nothing.
  [[nodiscard]] QString explanationAt(const QPointF& pixel) const;

  // A text at a place of the axes.
  QCPItemText* addText(double x, double y, const QString& text, Qt::Alignment alignment, const QColor& colour);
  // A line across the whole height (or width) at a value of the x (or y) axis, with its name.
  void addLimit(QCPAxis* axis, double value, const QString& name, const QColor& colour);

  // So many bars lie one under the other, each with room for a line of text: the plot is made no lower than that.
  void setRows(int rows) { rows_ = rows; }

  void addCorner(const QString& text, const QColor& colour);  // above the axes, at the right

  [[nodiscard]] QColor textColour() const { return palette().color(QPalette::Text); }
  [[nodiscard]] QColor quietColour() const;
  void restyle();  // anew, after the palette or the font has changed

  // The chart as it is, in that rectangle, in vectors where the painter's device has them.
  void render(QPainter& painter, const QRect& rectangle);

 protected:
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;

 private:
  void styleAxis(QCPAxis* axis, const QFont& font);
  void wrapLegend(int width);
  void makeRoom();

  int rows_ = 0;
  QPoint pressed_at_;

  QHash<QCPAbstractPlottable*, std::function<QString(int)>> explained_;
  std::function<QString(const QPointF&)> elsewhere_;
};

}  // namespace sibyl::gui
