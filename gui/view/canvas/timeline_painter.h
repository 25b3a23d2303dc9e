// Draws a timeline: on the left the names of rows, above the times, on a row its spans. On screen and in exported
// figures alike.
#pragma once

#include <QFont>
#include <QPainter>
#include <QPalette>
#include <optional>
#include <vector>

#include "gui/view/canvas/timeline_model.h"

namespace sibyl::gui {

// What is seen, and what of it is lit.
struct TimelineLook {
  TimeWindow window;
  int scroll = 0;  // pixels of rows above the first one that is seen
  std::optional<SpanPlace> hovered, selected;
  std::optional<TimelineArea> area;
  const SpanMatches* matches = nullptr;  // these are lit and all else fades
  bool critical = false;                 // the critical path is lit and all else fades
};

// Where rows lie, in pixels from the first one's process title.
class TimelineRows {
 public:
  TimelineRows() = default;
  // Rows are higher where all of them have room in `height` pixels.
  TimelineRows(const Timeline& timeline, const QFont& font, int height);

  [[nodiscard]] int axis() const { return axis_; }      // height of the times above the rows
  [[nodiscard]] int gutter() const { return gutter_; }  // width of the names before them
  [[nodiscard]] int height() const { return height_; }  // of all rows
  [[nodiscard]] int rowHeight() const { return row_; }
  [[nodiscard]] int titleHeight() const { return title_; }
  [[nodiscard]] int top(std::size_t row) const { return tops_[row]; }
  [[nodiscard]] std::optional<std::size_t> rowAt(int y) const;
  [[nodiscard]] std::size_t nearestRow(int y) const;  // of at least one

 private:
  std::vector<int> tops_;
  int axis_ = 0, gutter_ = 0, height_ = 0, row_ = 0, title_ = 0;
};

// Times to pixels.
struct TimeScale {
  TimeWindow window;
  double left = 0, width = 1;

  [[nodiscard]] double x(double time) const { return left + (time - window.begin) / window.width() * width; }
  [[nodiscard]] double time(double at) const { return window.begin + (at - left) / width * window.width(); }
  [[nodiscard]] double pixel() const { return window.width() / width; }
};
TimeScale timeScale(const TimelineRows& rows, const TimeWindow& window, int width);

QColor spanColour(const std::string& category, const std::string& name, const QPalette& palette);
void paintTimeline(QPainter& painter, const QSize& size, const Timeline& timeline, const TimelineRows& rows,
                   const TimelineLook& look, const QPalette& palette, const QFont& font);

}  // namespace sibyl::gui
