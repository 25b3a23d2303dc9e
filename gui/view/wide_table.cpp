#include "gui/view/wide_table.h"

#include <QHeaderView>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QToolTip>
#include <algorithm>
#include <numeric>

namespace sibyl::gui {

namespace {

int sumOf(const std::vector<int>& widths) { return std::accumulate(widths.begin(), widths.end(), 0); }

void cut(std::vector<int>& widths, int most) {
  for (int& width : widths) width = std::min(width, most);
}

std::vector<int> cutToRoom(std::vector<int> widths, int least, int room) {
  if (widths.empty()) return widths;
  for (int most = *std::ranges::max_element(widths); sumOf(widths) > room && most > least; --most)
    cut(widths, most - 1);
  return widths;
}

}  // namespace

std::vector<int> columnWidths(const std::vector<int>& wanted, int least, int room, std::size_t in_sight) {
  std::vector<int> widths = cutToRoom(wanted, least, room);
  if (sumOf(widths) > room) {  // it is scrolled anyhow
    widths = wanted;
    cut(widths, 2 * least);
    const auto first = static_cast<std::ptrdiff_t>(std::min(in_sight, widths.size()));
    std::ranges::copy(cutToRoom({widths.begin(), widths.begin() + first}, least, room), widths.begin());
    return widths;
  }
  int left = room - sumOf(widths), rest = sumOf(widths);
  // Column by column of what is left then, so that rounding leaves nothing over.
  for (int& width : widths) {
    if (left <= 0) break;
    const int own = width, more = static_cast<int>(static_cast<std::int64_t>(left) * own / rest);
    width += more;
    left -= more;
    rest -= own;
  }
  return widths;
}

WideTable::WideTable(QAbstractItemModel* model, bool sortable, const QString& accessibleName, QWidget* parent)
    : QTableView(parent) {
  setModel(model);
  horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  setSortingEnabled(sortable);
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setSelectionMode(QAbstractItemView::SingleSelection);
  setEditTriggers(QAbstractItemView::NoEditTriggers);
  setAlternatingRowColors(true);
  setShowGrid(false);
  setWordWrap(false);
  verticalHeader()->hide();
  verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
  horizontalHeader()->setHighlightSections(false);
  setAccessibleName(accessibleName);
  connect(horizontalHeader(), &QHeaderView::sectionResized, this, [this] {
    if (!filling_ && isVisible()) by_hand_ = true;
  });
}

void WideTable::fit() {
  const int columns = model()->columnCount();
  if (model()->rowCount() == 0 || columns == static_cast<int>(wanted_.size())) return;
  constexpr int room = 8;
  wanted_.clear();
  for (int c = 0; c < columns; ++c)
    wanted_.push_back(std::max(sizeHintForColumn(c), horizontalHeader()->sectionSizeHint(c)) + room);
  by_hand_ = false;
  fill();
}

void WideTable::keepInSight(int columns) {
  in_sight_ = static_cast<std::size_t>(columns);
  fill();
}

void WideTable::fill() {
  if (by_hand_ || wanted_.empty() || static_cast<int>(wanted_.size()) != model()->columnCount()) return;
  constexpr int readable = 160;
  const std::vector<int> widths = columnWidths(wanted_, readable, viewport()->width(), in_sight_);
  filling_ = true;
  for (std::size_t c = 0; c < widths.size(); ++c) setColumnWidth(static_cast<int>(c), widths[c]);
  filling_ = false;
}

void WideTable::keyPressEvent(QKeyEvent* event) {
  const bool enters = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
  if (enters && currentIndex().isValid()) emit returnPressed(currentIndex());
  QTableView::keyPressEvent(event);
}

void WideTable::resizeEvent(QResizeEvent* event) {
  QTableView::resizeEvent(event);
  fill();
}

bool WideTable::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<const QHelpEvent*>(event);
    const QModelIndex index = indexAt(help->pos());
    if (index.isValid() && sizeHintForIndex(index).width() > columnWidth(index.column())) {
      QToolTip::showText(help->globalPos(), index.data().toString(), viewport());
      return true;
    }
  }
  return QTableView::viewportEvent(event);
}

}  // namespace sibyl::gui
