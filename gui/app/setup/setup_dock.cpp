#include "gui/app/setup/setup_dock.h"

#include <QScrollArea>
#include <QScrollBar>
#include <QVBoxLayout>

namespace sibyl::gui {

SetupDock::SetupDock(Document& document, QWidget* parent) : QDockWidget(tr("Setup"), parent) {
  setObjectName(QStringLiteral("setup"));
  auto* scroll = new QScrollArea(this);
  auto* all = new QWidget(scroll);
  auto* layout = new QVBoxLayout(all);
  layout->setContentsMargins(6, 4, 6, 6);
  layout->setSpacing(4);
  model_ = new ModelSection(document, all);
  cluster_ = new ClusterSection(document, all);
  training_ = new TrainingSection(document, all);
  strategy_ = new StrategySection(document, all);
  sections_ = {model_, cluster_, training_, strategy_};
  for (ScenarioSection* section : sections_) layout->addWidget(section);
  layout->addStretch(1);
  scroll->setWidget(all);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAsNeeded);
  scroll->setMinimumWidth(all->minimumSizeHint().width() + scroll->verticalScrollBar()->sizeHint().width());
  setWidget(scroll);
}

void SetupDock::showScenario(const Scenario& scenario) {
  for (ScenarioSection* section : sections_) section->showScenario(scenario);
}

void SetupDock::showAnswer(const Answer& answer) {
  for (ScenarioSection* section : sections_) section->showAnswer(answer);
}

}  // namespace sibyl::gui
