#include "gui/model/table_model.h"

namespace sibyl::gui {
namespace {

int alignment(const Column& column) {
  return static_cast<int>((column.align == Column::Align::left ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
}

}  // namespace

void TableModel::setTable(Table table) {
  beginResetModel();
  table_ = std::move(table);
  endResetModel();
}

int TableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.rows.size());
}

int TableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.columns.size());
}

QVariant TableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const std::size_t column = static_cast<std::size_t>(index.column());
  if (role == Qt::TextAlignmentRole) return alignment(table_.columns[column]);
  const Cell& cell = table_.rows[static_cast<std::size_t>(index.row())][column];
  if (role == Qt::DisplayRole) return QString::fromStdString(cell.text);
  if (role == ValueRole) {
    const QString text = QString::fromStdString(cell.value);
    bool number = false;
    const double value = text.toDouble(&number);
    return number ? QVariant(value) : QVariant(text);
  }
  return {};
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const Column& column = table_.columns[static_cast<std::size_t>(section)];
  if (role == Qt::TextAlignmentRole) return alignment(column);
  if (role != Qt::DisplayRole) return {};
  QString title = QString::fromStdString(column.title);
  if (!title.isEmpty()) title[0] = title[0].toUpper();
  return title;
}

}  // namespace sibyl::gui
