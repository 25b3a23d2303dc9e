// Which cluster: one that is shipped or a file, how many nodes of it, and what of it is different.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QSpinBox>
#include <vector>

#include "gui/app/setup/change_row.h"
#include "gui/app/setup/section.h"

namespace sibyl::gui {

class ClusterSection : public ScenarioSection {
  Q_OBJECT

 public:
  ClusterSection(Document& document, QWidget* parent);

  void showScenario(const Scenario& scenario) override;
  void showAnswer(const Answer& answer) override;

 signals:
  void openRequested();
  void clusterChosen(const QString& cluster);

 private:
  QWidget* makeChanges();

  QComboBox* clusters_;
  QLabel* about_;
  QSpinBox* nodes_;
  Disclosure* more_ = nullptr;
  std::vector<ChangeRow*> changes_;
};

}  // namespace sibyl::gui
