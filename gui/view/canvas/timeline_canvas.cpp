#include "gui/view/canvas/timeline_canvas.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/view/canvas/timeline_text.h"

namespace sibyl::gui {
namespace {

constexpr double key_zoom = 1.5, wheel_zoom = 1.2;  // for one key, for one notch of the wheel
constexpr double key_pan = 0.15;                    // of what is seen
constexpr double tolerance = 2;                     // pixels beside a span that still count as on it

}  // namespace

TimelineCanvas::TimelineCanvas(QWidget* parent) : QAbstractScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::StrongFocus);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  viewport()->setMouseTracking(true);
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(tr("Timeline"));
  setAccessibleDescription(
      tr("Spans of every stream of every distinct rank. W and S zoom, A and D move, F shows all."));
}

void TimelineCanvas::setTimeline(std::shared_ptr<const Timeline> timeline) {
  const bool all = !timeline_ || showsAll();
  timeline_ = std::move(timeline);
  matches_.reset();
  look_ = {look_.window, look_.scroll, {}, {}, {}, nullptr, look_.critical};
  arrange();
  if (all)
    fit();
  else
    setWindow(look_.window);
  emit hoveredChanged();
  emit selectedChanged();
  emit areaChanged();
  viewport()->update();
}

void TimelineCanvas::setStale(bool stale) {
  stale_ = stale;
  viewport()->update();
}

void TimelineCanvas::setCriticalLit(bool lit) {
  look_.critical = lit;
  viewport()->update();
}

void TimelineCanvas::setSelecting(bool selecting) {
  selecting_ = selecting;
  showCursor();
}

void TimelineCanvas::showCursor() {
  if (drag_ == Drag::moves)
    viewport()->setCursor(Qt::ClosedHandCursor);
  else if (selecting_)
    viewport()->setCursor(Qt::CrossCursor);
  else
    viewport()->unsetCursor();
}

void TimelineCanvas::setMatches(std::optional<SpanMatches> matches) {
  matches_ = std::move(matches);
  look_.matches = matches_ ? &*matches_ : nullptr;
  viewport()->update();
}

void TimelineCanvas::setWindow(const TimeWindow& window) {
  if (!timeline_) return;
  const TimeWindow limited = window.limited(timeline_->end());
  viewport()->update();
  if (limited == look_.window) return;
  look_.window = limited;
  emit windowChanged();
}

bool TimelineCanvas::showsAll() const {
  return timeline_ && look_.window.begin <= 0 && look_.window.end >= timeline_->end();
}

void TimelineCanvas::fit() {
  if (timeline_) setWindow(TimeWindow{0, timeline_->end()}.zoomed(1.02, 0));
}

void TimelineCanvas::clearArea() {
  look_.area.reset();
  look_.selected.reset();
  emit areaChanged();
  emit selectedChanged();
  viewport()->update();
}

QPoint TimelineCanvas::pointOf(SpanPlace place) const {
  const Timeline::Row& row = timeline_->rows()[place.row];
  const double middle = (row.starts[place.span] + row.ends[place.span]) / 2;
  return {static_cast<int>(scale().x(middle)),
          rows_.axis() + rows_.top(place.row) - look_.scroll + rows_.rowHeight() / 2};
}

void TimelineCanvas::select(SpanPlace place) {
  const Timeline::Row& row = timeline_->rows()[place.row];
  const double begin = row.starts[place.span], end = row.ends[place.span];
  look_.selected = place;
  if (begin < look_.window.begin || end > look_.window.end) {
    const double wide = std::max(look_.window.width(), (end - begin) * 1.2);
    setWindow({(begin + end - wide) / 2, (begin + end + wide) / 2});
  }
  const int top = rows_.top(place.row), seen = viewport()->height() - rows_.axis();
  if (top < look_.scroll || top + rows_.rowHeight() > look_.scroll + seen)
    verticalScrollBar()->setValue(top - seen / 2);
  emit selectedChanged();
  viewport()->update();
}

// All rows, smaller where there are many; fonts in pixels, whatever the printer's resolution.
void TimelineCanvas::draw(QPainter& painter, const QSize& size) const {
  if (!timeline_) return;
  TimelineLook look = look_;
  look.hovered.reset();
  look.scroll = 0;
  QFont pixels = font();
  pixels.setPixelSize(QFontInfo(font()).pixelSize());
  const TimelineRows usual(*timeline_, pixels, size.height());
  const double scale = std::min(1.0, static_cast<double>(size.height()) / (usual.axis() + usual.height()));
  const QSize larger = (QSizeF(size) / scale).toSize();
  painter.save();
  painter.scale(scale, scale);
  paintTimeline(painter, larger, *timeline_, TimelineRows(*timeline_, pixels, larger.height()), look, palette(),
                pixels);
  painter.restore();
}

void TimelineCanvas::arrange() {
  rows_ = timeline_ ? TimelineRows(*timeline_, font(), viewport()->height()) : TimelineRows();
  const int seen = viewport()->height() - rows_.axis();
  verticalScrollBar()->setPageStep(std::max(1, seen));
  verticalScrollBar()->setSingleStep(std::max(1, rows_.rowHeight()));
  verticalScrollBar()->setRange(0, std::max(0, rows_.height() - seen));
  look_.scroll = verticalScrollBar()->value();
}

bool TimelineCanvas::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave) leave();
  return QAbstractScrollArea::viewportEvent(event);
}

void TimelineCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  if (!timeline_) {
    painter.fillRect(viewport()->rect(), palette().color(QPalette::Base));
    return;
  }
  paintTimeline(painter, viewport()->size(), *timeline_, rows_, look_, palette(), font());
  if (!stale_) return;
  QColor veil = palette().color(QPalette::Base);
  veil.setAlphaF(0.55F);
  painter.fillRect(viewport()->rect(), veil);
}

void TimelineCanvas::resizeEvent(QResizeEvent*) { arrange(); }

void TimelineCanvas::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::FontChange) arrange();
  viewport()->update();
}

void TimelineCanvas::scrollContentsBy(int, int) {
  look_.scroll = verticalScrollBar()->value();
  viewport()->update();
}

void TimelineCanvas::zoom(double factor, double x) {
  const double inside = std::clamp<double>(x, rows_.gutter(), viewport()->width());
  setWindow(look_.window.zoomed(factor, scale().time(inside)));
}

void TimelineCanvas::wheelEvent(QWheelEvent* event) {
  const QPoint angle = event->angleDelta();
  const double notches = (angle.y() != 0 ? angle.y() : angle.x()) / 120.0;
  if (event->modifiers() & Qt::ControlModifier) {
    zoom(std::pow(wheel_zoom, -notches), event->position().x());
  } else if ((event->modifiers() & Qt::ShiftModifier) || angle.y() == 0 || verticalScrollBar()->maximum() == 0) {
    setWindow(look_.window.panned(-notches * key_pan * look_.window.width()));
  } else {
    verticalScrollBar()->setValue(look_.scroll - static_cast<int>(notches * 3 * rows_.rowHeight()));
  }
  event->accept();
}

void TimelineCanvas::keyPressEvent(QKeyEvent* event) {
  if (event->modifiers() & ~(Qt::ShiftModifier | Qt::KeypadModifier)) return QAbstractScrollArea::keyPressEvent(event);
  const QPoint pointer = viewport()->mapFromGlobal(QCursor::pos());
  const bool over = viewport()->underMouse() && pointer.x() >= rows_.gutter();
  const double x = over ? pointer.x() : (rows_.gutter() + viewport()->width()) / 2.0;
  const double far = key_pan * look_.window.width();
  switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus: return zoom(1 / key_zoom, x);
    case Qt::Key_S:
    case Qt::Key_Minus: return zoom(key_zoom, x);
    case Qt::Key_A:
    case Qt::Key_Left: return setWindow(look_.window.panned(-far));
    case Qt::Key_D:
    case Qt::Key_Right: return setWindow(look_.window.panned(far));
    case Qt::Key_F:
    case Qt::Key_Home: return fit();
    case Qt::Key_Escape: return clearArea();
    default: QAbstractScrollArea::keyPressEvent(event);
  }
}

std::optional<SpanPlace> TimelineCanvas::spanAt(const QPointF& at) const {
  if (!timeline_ || at.x() < rows_.gutter() || at.y() < rows_.axis()) return {};
  const auto row = rows_.rowAt(static_cast<int>(at.y()) - rows_.axis() + look_.scroll);
  if (!row) return {};
  const TimeScale seen = scale();
  return timeline_->span_at(*row, seen.time(at.x()), tolerance * seen.pixel());
}

void TimelineCanvas::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !timeline_ || timeline_->rows().empty()) return;
  from_ = event->position();
  window_before_ = look_.window;
  scroll_before_ = look_.scroll;
  drag_ = event->modifiers() & Qt::ShiftModifier ? Drag::selects : Drag::pressed;
}

void TimelineCanvas::mouseMoveEvent(QMouseEvent* event) {
  if (drag_ == Drag::none) return hover(event->position(), event->globalPosition().toPoint());
  leave();
  if (drag_ == Drag::pressed && (event->position() - from_).manhattanLength() >= QApplication::startDragDistance()) {
    drag_ = selecting_ ? Drag::selects : Drag::moves;
    showCursor();
  }
  if (drag_ == Drag::moves) dragTo(event->position());
  if (drag_ == Drag::selects) selectTo(event->position());
}

void TimelineCanvas::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  const bool click = std::exchange(drag_, Drag::none) == Drag::pressed;
  showCursor();
  if (!click) return;
  look_.selected = spanAt(event->position());
  emit selectedChanged();
  viewport()->update();
}

void TimelineCanvas::hover(const QPointF& at, const QPoint& global) {
  const auto found = spanAt(at);
  if (found == look_.hovered) return;
  look_.hovered = found;
  if (found)
    QToolTip::showText(global + QPoint(0, 6), spanDetails(*timeline_, *found), viewport());
  else
    QToolTip::hideText();
  emit hoveredChanged();
  viewport()->update();
}

void TimelineCanvas::leave() {
  if (!look_.hovered) return;
  look_.hovered.reset();
  QToolTip::hideText();
  emit hoveredChanged();
  viewport()->update();
}

void TimelineCanvas::dragTo(const QPointF& at) {
  const double seconds =
      (from_.x() - at.x()) / std::max(1, viewport()->width() - rows_.gutter()) * window_before_.width();
  setWindow(window_before_.panned(seconds));
  verticalScrollBar()->setValue(scroll_before_ + static_cast<int>(from_.y() - at.y()));
}

void TimelineCanvas::selectTo(const QPointF& at) {
  const TimeScale seen = scale();
  const auto time = [&](const QPointF& point) {
    return std::clamp(seen.time(std::max<double>(point.x(), rows_.gutter())), 0.0, timeline_->end());
  };
  const double a = time(from_), b = time(at);
  const int shift = look_.scroll - rows_.axis();
  const std::size_t first = rows_.nearestRow(static_cast<int>(std::min(from_.y(), at.y())) + shift);
  const std::size_t last = rows_.nearestRow(static_cast<int>(std::max(from_.y(), at.y())) + shift);
  look_.area = TimelineArea{{std::min(a, b), std::max(a, b)}, first, last};
  emit areaChanged();
  viewport()->update();
}

}  // namespace sibyl::gui
