#include "gui/app/setup/setup_dock.h"

#include <QEvent>
#include <QScrollBar>
#include <QVBoxLayout>

namespace sibyl::gui {

SetupDock::SetupDock(Document& document, QWidget* parent)
    : QDockWidget(tr("Setup"), parent), scroll_(new QScrollArea(this)) {
  setObjectName(QStringLiteral("setup"));
  auto* all = new QWidget(scroll_);
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
  scroll_->setWidget(all);
  scroll_->setWidgetResizable(true);
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  all->installEventFilter(this);
  setWidget(scroll_);
}

// Never narrower than its contents, whatever is unfolded.
bool SetupDock::eventFilter(QObject* object, QEvent* event) {
  if (event->type() == QEvent::LayoutRequest)
    scroll_->setMinimumWidth(scroll_->widget()->minimumSizeHint().width() +
                             scroll_->verticalScrollBar()->sizeHint().width());
  return QDockWidget::eventFilter(object, event);
}

void SetupDock::showScenario(const Scenario& scenario) {
  for (ScenarioSection* section : sections_) section->showScenario(scenario);
}

void SetupDock::showAnswer(const Answer& answer) {
  for (ScenarioSection* section : sections_) section->showAnswer(answer);
}

}  // namespace sibyl::gui
