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
  QString tip_text = tr("Memory of the fullest device at its peak:");
  for (const MemoryPart& part : memory_parts())
    if ((memory.*part.value).value() > 0)
      tip_text += QStringLiteral("\n%1: %2").arg(text(part.title), text(to_string(memory.*part.value)));
  if (memory.cached().value() > 0) tip_text += "\n" + tr("allocator's cache: %1").arg(text(to_string(memory.cached())));
  setToolTip(tip_text + "\n" + tr("of %1").arg(text(to_string(capacity))));
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
    for (const MemoryPart& part : memory_parts()) {
      const double width = (memory_.*part.value).value() * scale;
      painter.fillRect(QRectF(x, frame.top(), width, frame.height()), colourOf(text(part.key), palette()));
      x += width;
    }
    // What the allocator holds beside what is used.
    const double held = frame.left() + memory_.needed().value() * scale;
    if (held > x)
      painter.fillRect(QRectF(x, frame.top(), held - x, frame.height()),
                       QBrush(colourOf(QStringLiteral("cached"), palette()), Qt::BDiagPattern));
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
