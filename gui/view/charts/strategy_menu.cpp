#include "gui/view/charts/strategy_menu.h"

#include <QMenu>

namespace sibyl::gui {

StrategyMenu::StrategyMenu(QWidget* parent) : QPushButton(tr("Compare with"), parent) {
  setMenu(new QMenu(this));
  setToolTip(tr("Simple strategies beside the scenario's own"));
}

void StrategyMenu::offer(const std::vector<SimpleStrategy>& strategies) {
  menu()->clear();
  for (const SimpleStrategy& simple : strategies) {
    QAction* action = menu()->addAction(simple.title);
    action->setCheckable(true);
    action->setChecked(chosen_.contains(simple.key));
    connect(action, &QAction::toggled, this, [this, key = simple.key](bool on) {
      chosen_.removeAll(key);
      if (on) chosen_ << key;
      emit chosenChanged();
    });
  }
}

}  // namespace sibyl::gui
