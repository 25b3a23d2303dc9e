// What is asked: model, cluster, training, strategy, one section each.
#pragma once

#include <QDockWidget>
#include <QScrollArea>
#include <vector>

#include "gui/app/setup/cluster_section.h"
#include "gui/app/setup/model_section.h"
#include "gui/app/setup/strategy_section.h"
#include "gui/app/setup/training_section.h"

namespace sibyl::gui {

class SetupDock : public QDockWidget {
  Q_OBJECT

 public:
  SetupDock(Document& document, QWidget* parent);

  void showScenario(const Scenario& scenario);
  void showAnswer(const Answer& answer);

  ModelSection& model() { return *model_; }
  ClusterSection& cluster() { return *cluster_; }
  StrategySection& strategy() { return *strategy_; }

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  QScrollArea* scroll_;
  ModelSection* model_;
  ClusterSection* cluster_;
  TrainingSection* training_;
  StrategySection* strategy_;
  std::vector<ScenarioSection*> sections_;
};

}  // namespace sibyl::gui
