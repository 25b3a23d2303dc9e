#include "gui/view/canvas/timeline_painter.h"

#include <QCoreApplication>
#include <QFontMetrics>
#include <algorithm>
#include <cmath>

#include "gui/view/canvas/timeline_text.h"
#include "gui/view/colours.h"

namespace sibyl::gui {
namespace {

constexpr double faded = 0.78;  // towards the background
constexpr int least_text = 30;  // pixels in which a name says anything

class TimelinePainter {
 public:
  TimelinePainter(QPainter& painter, const QSize& size, const Timeline& timeline, const TimelineRows& rows,
                  const TimelineLook& look, const QPalette& palette, const QFont& font)
      : painter_(painter),
        size_(size),
        timeline_(timeline),
        rows_(rows),
        look_(look),
        palette_(palette),
        metrics_(font),
        scale_(timeScale(rows, look.window, size.width())),
        ticks_(
            ticks_of(look.window, std::max(2, static_cast<int>(scale_.width) / (12 * metrics_.averageCharWidth())))) {
    const QColor base = palette.color(QPalette::Base);
    for (const std::string& category : timeline.categories())
      for (const char* name : {"forward", "backward"}) {
        colours_.push_back(spanColour(category, name, palette));
        colours_.push_back(mixed(colours_.back(), base, faded));
      }
    painter_.setFont(font);
  }

  void paint() {
    painter_.fillRect(QRect(QPoint(0, 0), size_), palette_.color(QPalette::Base));
    painter_.save();
    painter_.setClipRect(0, rows_.axis(), size_.width(), size_.height() - rows_.axis());
    paintGrid();
    for (const Timeline::Group& group : timeline_.groups()) paintGroup(group);
    paintArea();
    painter_.restore();
    paintAxis();
  }

 private:
  [[nodiscard]] int y(std::size_t row) const { return rows_.axis() + rows_.top(row) - look_.scroll; }
  [[nodiscard]] int left() const { return rows_.gutter(); }

  void paintGrid() {
    painter_.setPen(mixed(palette_.color(QPalette::Base), palette_.color(QPalette::Text), 0.10));
    for (const double time : ticks_.times) {
      const int x = static_cast<int>(std::lround(scale_.x(time)));
      if (x >= left()) painter_.drawLine(x, rows_.axis(), x, size_.height());
    }
  }

  void paintGroup(const Timeline::Group& group) {
    if (group.rows == 0) return;
    const int top = y(group.first_row) - rows_.titleHeight();
    const QRect title(0, top, size_.width(), rows_.titleHeight());
    if (title.top() < size_.height() && title.bottom() >= rows_.axis()) {
      painter_.fillRect(title, mixed(palette_.color(QPalette::Base), palette_.color(QPalette::Text), 0.07));
      QFont bold = painter_.font();
      const QFont plain = bold;
      bold.setBold(true);
      painter_.setFont(bold);
      painter_.setPen(palette_.color(QPalette::Text));
      painter_.drawText(title.adjusted(8, 0, -8, 0), Qt::AlignLeft | Qt::AlignVCenter,
                        QString::fromStdString(group.title));
      painter_.setFont(plain);
      painter_.drawText(
          title.adjusted(8, 0, -8, 0), Qt::AlignRight | Qt::AlignVCenter,
          QCoreApplication::translate("Timeline", "the step ends after %1").arg(timeText(timeline_.end(group.source))));
    }
    for (std::size_t r = group.first_row; r < group.first_row + group.rows; ++r)
      if (y(r) < size_.height() && y(r) + rows_.rowHeight() >= rows_.axis()) paintRow(r);
    paintEnd(group);
  }

  void paintRow(std::size_t r) {
    const QRect name(8, y(r), left() - 14, rows_.rowHeight());
    painter_.setPen(mixed(palette_.color(QPalette::Text), palette_.color(QPalette::Base), 0.25));
    painter_.drawText(
        name, Qt::AlignLeft | Qt::AlignVCenter,
        metrics_.elidedText(QString::fromStdString(timeline_.rows()[r].title), Qt::ElideRight, name.width()));
    painter_.save();
    painter_.setClipRect(QRect(left(), y(r), size_.width() - left(), rows_.rowHeight()), Qt::IntersectClip);
    for (const Piece& piece : timeline_.pieces(r, look_.window, scale_.pixel())) paintPiece(r, piece);
    flush();
    underline(y(r), {});
    painter_.restore();
  }

  [[nodiscard]] bool isLit(std::size_t r, const Piece& piece, bool critical) const {
    if (look_.matches && !look_.matches->any(r, piece)) return false;
    return !look_.critical || critical || !timeline_.has_critical_path();
  }

  // Each category's colour in four: of what is named forward or not, lit or faded.
  [[nodiscard]] const QColor& colour(std::size_t r, const Piece& piece, bool lit) const {
    const bool forward = timeline_.rows()[r].spans[piece.first]->name().starts_with("forward");
    return colours_[4 * piece.category + (forward ? 0 : 2) + (lit ? 0 : 1)];
  }

  void paintPiece(std::size_t r, const Piece& piece) {
    const bool single = piece.last == piece.first + 1;
    const int from = std::max(static_cast<int>(std::floor(std::max(scale_.x(piece.begin), -10.0))), -10);
    const int until = static_cast<int>(std::floor(std::min(scale_.x(piece.end), size_.width() + 10.0)));
    int width = std::max(1, until - from);
    if (width > 3) --width;  // neighbours stay apart
    const bool critical = timeline_.any_critical(r, piece), lit = isLit(r, piece, critical);
    QColor fill = colour(r, piece, lit);
    // In eighths, so that neighbours have one colour more often.
    const double covered = std::ceil(8 * piece.covered - 0.5) / 8;
    if (!single && covered < 1) fill = mixed(palette_.color(QPalette::Base), fill, std::max(0.375, covered));
    const QRect box(from, y(r) + 1, width, rows_.rowHeight() - 5);
    cover(box, fill);
    if (critical) underline(y(r), {from, std::max(from + 1, until)});
    const SpanPlace place{r, piece.first};
    const bool marked = look_.hovered == place || look_.selected == place;
    if (!single || (!marked && width < least_text)) return;
    flush();
    if (marked) paintMark(place, box);
    const QRect shown =
        box.intersected(QRect(left(), box.top(), size_.width() - left(), box.height())).adjusted(4, 0, -3, 0);
    if (shown.width() < least_text) return;
    painter_.setPen(lit ? textOn(fill) : mixed(palette_.color(QPalette::Text), palette_.color(QPalette::Base), 0.45));
    const QString name = QString::fromStdString(timeline_.rows()[r].spans[piece.first]->name());
    painter_.drawText(shown, Qt::AlignLeft | Qt::AlignVCenter,
                      metrics_.elidedText(name, Qt::ElideRight, shown.width()));
  }

  // Narrow neighbours of one colour are filled at once.
  void cover(const QRect& box, const QColor& colour) {
    const bool continues =
        box.width() <= 2 && colour == covering_ && box.left() <= covered_.right() + 1 && !covered_.isNull();
    if (!continues) flush();
    covered_ = continues ? covered_.united(box) : box;
    covering_ = colour;
  }

  void flush() {
    if (!covered_.isNull()) painter_.fillRect(covered_, covering_);
    covered_ = {};
  }

  // The critical path below a row, from pixel to pixel; what touches is drawn at once.
  void underline(int top, std::pair<int, int> next) {
    if (next.first <= underlined_.second && next.second > next.first && underlined_.second > underlined_.first) {
      underlined_.second = std::max(underlined_.second, next.second);
      return;
    }
    if (underlined_.second > underlined_.first)
      painter_.fillRect(underlined_.first, top + rows_.rowHeight() - 3, underlined_.second - underlined_.first, 2,
                        palette_.color(QPalette::Text));
    underlined_ = next;
  }

  void paintMark(const SpanPlace& place, const QRect& box) {
    painter_.setPen(QPen(palette_.color(QPalette::Text), look_.selected == place ? 2 : 1));
    painter_.setBrush(Qt::NoBrush);
    painter_.drawRect(box.adjusted(0, 0, -1, -1));
  }

  // Where the process' step ends: of the predicted and the real one beside it each its own.
  void paintEnd(const Timeline::Group& group) {
    const int x = static_cast<int>(std::lround(scale_.x(timeline_.end(group.source))));
    if (x < left() || x > size_.width()) return;
    painter_.setPen(QPen(mixed(palette_.color(QPalette::Text), palette_.color(QPalette::Base), 0.3), 1, Qt::DashLine));
    painter_.drawLine(x, y(group.first_row), x, y(group.first_row + group.rows - 1) + rows_.rowHeight());
  }

  void paintArea() {
    if (!look_.area) return;
    const TimelineArea& area = *look_.area;
    const int from = std::max(left(), static_cast<int>(std::lround(scale_.x(area.window.begin))));
    const int until = static_cast<int>(std::lround(scale_.x(area.window.end)));
    const QRect box(QPoint(from, y(area.first_row)), QPoint(until, y(area.last_row) + rows_.rowHeight() - 1));
    QColor tint = palette_.color(QPalette::Highlight);
    painter_.setPen(QPen(tint, 1));
    tint.setAlphaF(0.18F);
    painter_.setBrush(tint);
    painter_.drawRect(box);
  }

  void paintAxis() {
    const QRect strip(0, 0, size_.width(), rows_.axis());
    painter_.fillRect(strip, palette_.color(QPalette::Window));
    painter_.setPen(mixed(palette_.color(QPalette::Window), palette_.color(QPalette::WindowText), 0.3));
    painter_.drawLine(strip.bottomLeft(), strip.bottomRight());
    for (std::size_t i = 0; i < ticks_.times.size(); ++i) {
      const int x = static_cast<int>(std::lround(scale_.x(ticks_.times[i])));
      const QString label = QString::fromStdString(ticks_.labels[i]);
      if (x < left() || x + metrics_.horizontalAdvance(label) + 6 > size_.width()) continue;
      painter_.setPen(mixed(palette_.color(QPalette::Window), palette_.color(QPalette::WindowText), 0.4));
      painter_.drawLine(x, strip.bottom() - 6, x, strip.bottom());
      painter_.setPen(palette_.color(QPalette::WindowText));
      painter_.drawText(QRect(x + 4, 0, size_.width() - x, strip.height() - 2), Qt::AlignLeft | Qt::AlignVCenter,
                        label);
    }
  }

  QPainter& painter_;
  QSize size_;
  const Timeline& timeline_;
  const TimelineRows& rows_;
  const TimelineLook& look_;
  const QPalette& palette_;
  QFontMetrics metrics_;
  TimeScale scale_;
  TimeTicks ticks_;
  std::vector<QColor> colours_;
  QRect covered_;  // and not yet filled
  QColor covering_;
  std::pair<int, int> underlined_;  // and not yet drawn
};

}  // namespace

TimelineRows::TimelineRows(const Timeline& timeline, const QFont& font, int height) {
  const QFontMetrics metrics(font);
  row_ = metrics.height() + 9;
  title_ = metrics.height() + 8;
  axis_ = metrics.height() + 12;
  const int titles = static_cast<int>(timeline.groups().size()) * (title_ + 6),
            count = static_cast<int>(timeline.rows().size());
  if (count > 0) row_ = std::clamp((height - axis_ - titles) / count, row_, 2 * row_);
  for (const Timeline::Group& group : timeline.groups()) {
    if (group.rows == 0) continue;
    height_ += title_;
    for (std::size_t r = group.first_row; r < group.first_row + group.rows; ++r) {
      gutter_ = std::max(gutter_, metrics.horizontalAdvance(QString::fromStdString(timeline.rows()[r].title)));
      tops_.push_back(height_);
      height_ += row_;
    }
    height_ += 6;
  }
  gutter_ = std::min(gutter_, 24 * metrics.averageCharWidth()) + 22;
}

std::optional<std::size_t> TimelineRows::rowAt(int y) const {
  const auto next = std::upper_bound(tops_.begin(), tops_.end(), y);
  if (next == tops_.begin()) return {};
  const auto row = static_cast<std::size_t>(next - tops_.begin()) - 1;
  if (y >= tops_[row] + row_) return {};
  return row;
}

std::size_t TimelineRows::nearestRow(int y) const {
  const auto next = std::upper_bound(tops_.begin(), tops_.end(), y);
  return next == tops_.begin() ? 0 : static_cast<std::size_t>(next - tops_.begin()) - 1;
}

TimeScale timeScale(const TimelineRows& rows, const TimeWindow& window, int width) {
  return {window, static_cast<double>(rows.gutter()), std::max(1.0, static_cast<double>(width - rows.gutter()))};
}

QColor spanColour(const std::string& category, const std::string& name, const QPalette& palette) {
  if (category == "wait") return colourOf("idle", palette);
  if (category == "data") return colourOf("io", palette);
  if (category == "turn")
    return mixed(colourOf(name.starts_with("forward") ? "forward" : "backward", palette), palette.color(QPalette::Base),
                 0.35);
  return colourOf(QString::fromStdString(category), palette);
}

void paintTimeline(QPainter& painter, const QSize& size, const Timeline& timeline, const TimelineRows& rows,
                   const TimelineLook& look, const QPalette& palette, const QFont& font) {
  TimelinePainter(painter, size, timeline, rows, look, palette, font).paint();
}

}  // namespace sibyl::gui
