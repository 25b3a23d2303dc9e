#include "gui/view/flow_layout.h"

#include <QStyle>
#include <QWidget>
#include <algorithm>

namespace sibyl::gui {
namespace {

// Hidden items take no room.
bool isThere(const QLayoutItem& item) { return !item.isEmpty(); }
QSize wanted(const QLayoutItem& item) { return item.sizeHint().expandedTo(item.minimumSize()); }
// A widget whose own width does not count takes what there is.
bool expands(QLayoutItem& item) {
  const QWidget* widget = item.widget();
  const bool any = widget != nullptr && widget->sizePolicy().horizontalPolicy() == QSizePolicy::Ignored;
  return isThere(item) && (any || (item.expandingDirections() & Qt::Horizontal));
}

}  // namespace

FlowLayout::FlowLayout(QWidget* parent) : QLayout(parent) { setContentsMargins(0, 0, 0, 0); }

FlowLayout::~FlowLayout() = default;

void FlowLayout::setGaps(int between, int lines) {
  gap_ = between;
  line_gap_ = lines;
}

void FlowLayout::addStretch() {
  auto* nothing = new QWidget(parentWidget());
  nothing->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  addWidget(nothing);
}

void FlowLayout::addItem(QLayoutItem* item) { items_.emplace_back(item); }

QLayoutItem* FlowLayout::itemAt(int index) const {
  return index >= 0 && index < count() ? items_[static_cast<std::size_t>(index)].get() : nullptr;
}

QLayoutItem* FlowLayout::takeAt(int index) {
  if (index < 0 || index >= count()) return nullptr;
  QLayoutItem* item = items_[static_cast<std::size_t>(index)].release();
  items_.erase(items_.begin() + index);
  return item;
}

QSize FlowLayout::sizeHint() const {
  int width = 0, height = 0;
  for (const auto& item : items_) {
    if (!isThere(*item)) continue;
    width += (width > 0 ? gap_ : 0) + wanted(*item).width();
    height = std::max(height, wanted(*item).height());
  }
  const QMargins margins = contentsMargins();
  return {width + margins.left() + margins.right(), height + margins.top() + margins.bottom()};
}

QSize FlowLayout::minimumSize() const {
  QSize least(0, 0);
  for (const auto& item : items_)
    if (isThere(*item)) least = least.expandedTo(item->minimumSize());
  const QMargins margins = contentsMargins();
  return least + QSize(margins.left() + margins.right(), margins.top() + margins.bottom());
}

void FlowLayout::setGeometry(const QRect& area) {
  QLayout::setGeometry(area);
  place(area, true);
}

int FlowLayout::place(const QRect& area, bool moves) const {
  const QMargins margins = contentsMargins();
  const QRect inside = area.marginsRemoved(margins);
  int y = inside.top();
  for (std::size_t first = 0; first < items_.size();) {
    int width = 0, height = 0;
    std::size_t end = first;
    for (; end < items_.size(); ++end) {
      if (!isThere(*items_[end])) continue;
      const QSize size = wanted(*items_[end]);
      const int with = width + (height > 0 ? gap_ : 0) + size.width();
      if (with > inside.width() && height > 0) break;
      width = with;
      height = std::max({height, size.height(), 1});
    }
    if (moves) move(first, end, {inside.left(), y, inside.width(), height}, std::max(0, inside.width() - width));
    if (height > 0) y += height + line_gap_;
    first = end;
  }
  return std::max(0, y - inside.top() - line_gap_) + margins.top() + margins.bottom();
}

// What is left is dealt out evenly among those that expand, as far as each may.
void FlowLayout::move(std::size_t first, std::size_t end, const QRect& line, int rest) const {
  std::vector<int> widths;
  for (std::size_t i = first; i < end; ++i) widths.push_back(std::min(wanted(*items_[i]).width(), line.width()));
  const auto grows = [&](std::size_t i) {
    return expands(*items_[i]) && widths[i - first] < items_[i]->maximumSize().width();
  };
  while (rest > 0) {
    int growing = 0;
    for (std::size_t i = first; i < end; ++i) growing += grows(i) ? 1 : 0;
    if (growing == 0) break;
    const int share = std::max(1, rest / growing);
    for (std::size_t i = first; i < end && rest > 0; ++i) {
      if (!grows(i)) continue;
      const int more = std::min({share, rest, items_[i]->maximumSize().width() - widths[i - first]});
      widths[i - first] += more;
      rest -= more;
    }
  }
  const Qt::LayoutDirection direction = parentWidget() ? parentWidget()->layoutDirection() : Qt::LeftToRight;
  int x = line.left();
  for (std::size_t i = first; i < end; ++i) {
    if (!isThere(*items_[i])) continue;
    const QRect box(x, line.top(), widths[i - first], line.height());
    items_[i]->setGeometry(QStyle::visualRect(direction, line, box));
    x += box.width() + gap_;
  }
}

}  // namespace sibyl::gui
