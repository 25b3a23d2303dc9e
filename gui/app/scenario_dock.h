// The scenarios of the session: which there are, which is shown, which is pinned as the baseline.
#pragma once

#include <QDockWidget>
#include <QLabel>
#include <QListView>
#include <QToolBar>

#include "gui/model/document.h"
#include "gui/model/scenario_list.h"

namespace sibyl::gui {

class ScenarioDock : public QDockWidget {
  Q_OBJECT

 public:
  // `actions`: what can be done with the current scenario, in the context menu; the first of them, `buttons`, are on a
  // tool bar, too.
  ScenarioDock(Document& document, const QList<QAction*>& actions, int buttons, QWidget* parent);

  void rename();  // the current one, in place

 private:
  void follow();

  Document& document_;
  ScenarioList* model_;
  QListView* list_;
  QLabel* baseline_;
};

}  // namespace sibyl::gui
