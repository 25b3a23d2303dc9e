// A table as views show them: whole rows are picked, no grid, and columns that fill its width.
//
// Each column is as wide as what stands in it. Where that is more than there is, the widest are cut, evenly, and what
// they say is told in full beside the pointer; where there is room left over, all get of it in proportion. Who drags a
// column's edge has the widths from then on.
#pragma once

#include <QTableView>
#include <vector>

namespace sibyl::gui {

class WideTable : public QTableView {
  Q_OBJECT

 public:
  // `sortable`: by a click on a header; until then rows lie as the model has them.
  WideTable(QAbstractItemModel* model, bool sortable, const QString& accessibleName, QWidget* parent);

  // Once there is something in it; later only where there are other columns, for widths that jump disturb.
  void fit();
  // Where not all of it has room, the first of the columns do, and only the others are scrolled to.
  void keepInSight(int columns);

 signals:
  // Return or Enter on a row. activated() comes after a click as well: the second of two or, in some styles, each.
  void returnPressed(const QModelIndex& current);

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  void fill();

  std::vector<int> wanted_;  // widths of what stands in the columns
  std::size_t in_sight_ = 0;
  bool by_hand_ = false, filling_ = false;
};

// Widths of columns that want so much, where there is `room` for all: what is wider than the widest that there is room
// for is cut to that, but not below `least`; where all of it cannot be seen even so, that is done with the first
// `in_sight` columns alone, and of the others only what is wider than twice that is cut.
std::vector<int> columnWidths(const std::vector<int>& wanted, int least, int room, std::size_t in_sight = 0);

}  // namespace sibyl::gui
