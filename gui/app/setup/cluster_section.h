// Which cluster: one that is shipped or a file, how many nodes of how many devices and of which kind, how much of its
// network others use, and what else of it is different.
#pragma once

#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <vector>

#include "gui/app/setup/background_box.h"
#include "gui/app/setup/change_row.h"
#include "gui/app/setup/count_box.h"
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
  void makeMachine();
  void makeCount(CountBox* box, const char* option, const QString& name, const QString& why);
  QWidget* makeChanges();
  void showUsual(const Scenario& scenario, const Cluster& cluster);

  QComboBox* clusters_;
  QLabel* about_;
  std::string described_;  // the cluster that it is about
  CountBox* nodes_;
  CountBox* each_;          // devices of a node
  QComboBox* types_;        // of device
  BackgroundBox* between_;  // nodes
  BackgroundBox* inside_;   // a node
  BackgroundBox* fabric_;   // its links; shown where the cluster has one
  QFormLayout* machine_;
  Disclosure* more_ = nullptr;
  std::vector<ChangeRow*> changes_;
};

}  // namespace sibyl::gui
