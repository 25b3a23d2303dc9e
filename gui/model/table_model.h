// A base/table.h Table as a Qt model: cells show their text, sort by their value (as numbers where both are numbers),
// and are aligned as their column is. For views that show what a report says.
#pragma once

#include <QAbstractTableModel>

#include "base/table.h"

namespace sibyl::gui {

class TableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;

  static constexpr int ValueRole = Qt::UserRole;  // the cell's value: a double where it is a number; to sort by

  void setTable(Table table);
  [[nodiscard]] const Table& table() const { return table_; }

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  Table table_;
};

}  // namespace sibyl::gui
