#include "gui/app/scenario_dock.h"

#include <QVBoxLayout>

#include "gui/app/text.h"

namespace sibyl::gui {

ScenarioDock::ScenarioDock(Document& document, const QList<QAction*>& actions, int buttons, QWidget* parent)
    : QDockWidget(tr("Scenarios"), parent), document_(document) {
  setObjectName(QStringLiteral("scenarios"));
  auto* all = new QWidget(this);
  model_ = new ScenarioList(document, all);
  list_ = new QListView(all);
  list_->setModel(model_);
  list_->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed);
  list_->setAccessibleName(tr("Scenarios"));
  list_->setObjectName(QStringLiteral("scenario list"));
  list_->setFrameShape(QFrame::NoFrame);
  list_->setSpacing(2);
  list_->setContextMenuPolicy(Qt::ActionsContextMenu);
  list_->addActions(actions);
  auto* bar = new QToolBar(all);
  bar->setToolButtonStyle(Qt::ToolButtonTextOnly);
  bar->addActions(actions.mid(0, buttons));
  baseline_ = new QLabel(all);
  baseline_->setWordWrap(true);
  baseline_->setContentsMargins(6, 2, 6, 4);
  baseline_->setForegroundRole(QPalette::PlaceholderText);
  auto* layout = new QVBoxLayout(all);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  layout->addWidget(bar);
  layout->addWidget(list_, 1);
  layout->addWidget(baseline_);
  setWidget(all);
  connect(list_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& current) {
    if (current.isValid()) document_.select(current.row());
  });
  connect(&document_, &Document::changed, this, &ScenarioDock::follow);
  follow();
}

void ScenarioDock::follow() {
  const State& state = document_.state();
  if (list_->currentIndex().row() != state.current) list_->setCurrentIndex(model_->index(state.current));
  if (!state.baseline) {
    baseline_->setText(tr("No baseline is pinned."));
    baseline_->setToolTip(tr("Pin a scenario to see how others differ from it"));
    return;
  }
  baseline_->setText(tr("Baseline: %1").arg(text(state.baseline->name)));
  baseline_->setToolTip(tr("As it was when it was pinned:\n%1").arg(text(command_line(*state.baseline))));
}

void ScenarioDock::rename() {
  setVisible(true);
  raise();
  list_->edit(model_->index(document_.state().current));
}

}  // namespace sibyl::gui
