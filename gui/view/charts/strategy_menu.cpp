#include "gui/view/charts/strategy_menu.h"

#include <QMenu>

namespace sibyl::gui {

StrategyMenu::StrategyMenu(const QString& title, const QString& tip, QWidget* parent) : QPushButton(title, parent) {
  setMenu(new QMenu(this));
  setToolTip(tip);
}

// The style's own leaves no room between the words and the arrow.
QSize StrategyMenu::sizeHint() const {
  return QPushButton::sizeHint() + QSize(fontMetrics().averageCharWidth() * 2, 0);
}

void StrategyMenu::rename(const QString& key, const QString& now) {
  chosen_.removeAll(now);  // of one that is no more
  if (const qsizetype place = chosen_.indexOf(key); place >= 0) chosen_[place] = now;
}

void StrategyMenu::offer(const std::vector<Entry>& entries) {
  menu()->clear();
  for (const Entry& entry : entries) {
    if (entry.begins_group) menu()->addSeparator();
    // What somebody called "R&D" is no mnemonic.
    QAction* action = menu()->addAction(QString(entry.title).replace('&', "&&"));
    action->setCheckable(true);
    action->setChecked(has(entry.key));
    connect(action, &QAction::toggled, this, [this, key = entry.key](bool on) {
      chosen_.removeAll(key);
      if (on) chosen_ << key;
      emit chosenChanged();
    });
  }
}

}  // namespace sibyl::gui
