// The document's scenarios as a Qt model: one a row, the name editable. Of the current one the font is bold; the one
// that is pinned, as it is now, is called so beside its name, and Qt::UserRole tells it.
#pragma once

#include <QAbstractListModel>

#include "gui/model/document.h"

namespace sibyl::gui {

class ScenarioList : public QAbstractListModel {
  Q_OBJECT

 public:
  explicit ScenarioList(Document& document, QObject* parent = nullptr);

  static constexpr int PinnedRole = Qt::UserRole;

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;

 private:
  void follow();

  Document& document_;
  int rows_ = 0;
};

}  // namespace sibyl::gui
