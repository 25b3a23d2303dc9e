// A button whose menu ticks simple strategies that are to be shown beside the scenario's own.
#pragma once

#include <QPushButton>
#include <QStringList>

#include "gui/view/charts/scaling_series.h"

namespace sibyl::gui {

class StrategyMenu : public QPushButton {
  Q_OBJECT

 public:
  explicit StrategyMenu(QWidget* parent);

  void offer(const std::vector<SimpleStrategy>& strategies);
  [[nodiscard]] const QStringList& chosen() const { return chosen_; }  // their keys
  void choose(const QStringList& keys) { chosen_ = keys; }             // tells nobody

 signals:
  void chosenChanged();

 private:
  QStringList chosen_;
};

}  // namespace sibyl::gui
