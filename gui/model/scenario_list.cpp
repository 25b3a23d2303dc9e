#include "gui/model/scenario_list.h"

#include <QFont>

namespace sibyl::gui {

ScenarioList::ScenarioList(Document& document, QObject* parent)
    : QAbstractListModel(parent), document_(document), rows_(document.count()) {
  connect(&document_, &Document::changed, this, &ScenarioList::follow);
}

// Rows come and go anywhere (undo), but are few.
void ScenarioList::follow() {
  if (document_.count() != rows_) {
    beginResetModel();
    rows_ = document_.count();
    endResetModel();
  } else {
    emit dataChanged(index(0), index(rows_ - 1));
  }
}

int ScenarioList::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : rows_; }

QVariant ScenarioList::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= document_.count()) return {};
  const State& state = document_.state();
  const Scenario& scenario = state.scenarios[static_cast<std::size_t>(index.row())];
  const QString name = QString::fromStdString(scenario.name);
  const bool pinned = state.baseline == scenario;
  switch (role) {
    case Qt::DisplayRole: return pinned ? tr("%1 (pinned)").arg(name) : name;
    case Qt::EditRole: return name;
    case Qt::ToolTipRole: return QString::fromStdString(command_line(scenario));
    case Qt::FontRole: {
      QFont font;
      font.setBold(index.row() == state.current);
      return font;
    }
    case PinnedRole: return pinned;
    default: return {};
  }
}

bool ScenarioList::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !index.isValid() || value.toString().trimmed().isEmpty()) return false;
  document_.rename(index.row(), value.toString());
  return true;
}

Qt::ItemFlags ScenarioList::flags(const QModelIndex& index) const {
  return index.isValid() ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsEditable | Qt::ItemNeverHasChildren
                         : Qt::NoItemFlags;
}

}  // namespace sibyl::gui
