#include "gui/app/memory_bar.h"

#include <QPainter>
#include <algorithm>

#include "base/quantity.h"
#include "gui/app/text.h"
#include "gui/view/colours.h"
#include "oracle/report/report.h"

namespace sibyl::gui {

MemoryBar::MemoryBar(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName(tr("Memory of the fullest device"));
}

QSize MemoryBar::sizeHint() const {
  const int height = fontMetrics().height();
  return {8 * height, std::max(8, 2 * height / 3)};
}

void MemoryBar::display(const MemoryBreakdown& memory, Bytes capacity) {
  memory_ = memory;
  capacity_ = capacity;
  QString tip_text = tr("Memory of the fullest device at its peak: %1 of %2")
                         .arg(text(to_string(memory.needed())), text(to_string(capacity)));
  for (const MemorySlice& slice : memory_slices(memory))
    tip_text += QStringLiteral("\n%1: %2").arg(text(slice.title), text(to_string(slice.value)));
  if (memory.cached().value() > 0) tip_text += "\n" + tr("The cache: %1").arg(text(cache_meaning));
  setToolTip(tip_text);
  update();
}

void MemoryBar::clear() {
  memory_ = {};
  capacity_ = {};
  setToolTip({});
  update();
}

void MemoryBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const QRectF frame = QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5);
  painter.fillRect(frame, palette().color(QPalette::Base));
  const double whole = std::max(capacity_.value(), memory_.needed().value());
  if (whole > 0) {
    const double scale = frame.width() / whole;
    double x = frame.left();
    for (const MemorySlice& slice : memory_slices(memory_)) {
      const double width = slice.value.value() * scale;
      // Held, but not used: hatched.
      const Qt::BrushStyle style = slice.key == cache_key ? Qt::BDiagPattern : Qt::SolidPattern;
      painter.fillRect(QRectF(x, frame.top(), width, frame.height()),
                       QBrush(colourOf(text(slice.key), palette()), style));
      x += width;
    }
    if (memory_.needed() > capacity_) {
      const double end = frame.left() + capacity_.value() * scale;
      painter.setPen(QPen(palette().color(QPalette::WindowText), 2));
      painter.drawLine(QPointF(end, frame.top()), QPointF(end, frame.bottom()));
    }
  }
  painter.setPen(palette().color(QPalette::Mid));
  painter.drawRect(frame);
}

}  // namespace sibyl::gui
