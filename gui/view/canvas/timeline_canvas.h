// The timeline's surface: zoomed and moved by wheel, keys and drag; says what lies under the pointer.
//
// Ctrl+wheel, W and S zoom; the wheel scrolls, with Shift along time; A, D and the arrows move; dragging moves,
// Shift+drag selects an area, and so does dragging while setSelecting(true); F shows all; Esc gives the selection up.
#pragma once

#include <QAbstractScrollArea>
#include <QBasicTimer>
#include <memory>
#include <optional>

#include "gui/view/canvas/timeline_painter.h"

namespace sibyl::gui {

class TimelineCanvas : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit TimelineCanvas(QWidget* parent = nullptr);

  // What was seen stays in sight; where that was everything, everything is. Null: nothing to show.
  void setTimeline(std::shared_ptr<const Timeline> timeline);
  [[nodiscard]] const Timeline* timeline() const { return timeline_.get(); }
  void setStale(bool stale);
  void setCriticalLit(bool lit);
  void setSelecting(bool selecting);
  void setMatches(std::optional<SpanMatches> matches);  // none: nothing is searched for
  [[nodiscard]] const SpanMatches* matches() const { return matches_ ? &*matches_ : nullptr; }

  [[nodiscard]] TimeWindow window() const { return look_.window; }
  void setWindow(const TimeWindow& window);
  [[nodiscard]] bool showsAll() const;
  [[nodiscard]] const TimelineLook& look() const { return look_; }
  [[nodiscard]] QPoint pointOf(SpanPlace place) const;  // its middle, in the viewport
  void select(SpanPlace place);                         // and scroll to it
  void draw(QPainter& painter, const QSize& size) const;

 public slots:
  void fit();
  void clearArea();

 signals:
  void windowChanged();
  void hoveredChanged();
  void selectedChanged();
  void areaChanged();

 protected:
  bool viewportEvent(QEvent* event) override;
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void changeEvent(QEvent* event) override;
  void scrollContentsBy(int, int) override;

 private:
  enum class Drag { none, pressed, moves, selects };
  [[nodiscard]] TimeScale scale() const { return timeScale(rows_, look_.window, viewport()->width()); }
  [[nodiscard]] std::optional<SpanPlace> spanAt(const QPointF& at) const;
  void zoom(double factor, double x);
  void hover(const QPointF& at, const QPoint& global);
  void leave();
  void dragTo(const QPointF& at);
  void selectTo(const QPointF& at);
  void showCursor();
  void arrange();

  std::shared_ptr<const Timeline> timeline_;
  std::optional<SpanMatches> matches_;
  TimelineRows rows_;
  TimelineLook look_;
  bool stale_ = false;
  bool selecting_ = false;
  Drag drag_ = Drag::none;
  QPointF from_, at_;         // of the drag; the pointer
  TimeWindow window_before_;  // the drag
  int scroll_before_ = 0;
};

}  // namespace sibyl::gui
