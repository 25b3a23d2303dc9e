// Which model: a file, one used before, or one of the zoo; and what of it is left open (sequence length…).
#pragma once

#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QSpinBox>
#include <map>

#include "gui/app/setup/section.h"

namespace sibyl::gui {

class ModelSection : public ScenarioSection {
  Q_OBJECT

 public:
  ModelSection(Document& document, QWidget* parent);

  void showScenario(const Scenario& scenario) override;
  void showAnswer(const Answer& answer) override;

 signals:
  void openRequested();                    // a file is to be chosen
  void modelChosen(const QString& model);  // a path or zoo:NAME

 private:
  void fillModels();
  void showDimensions(const std::vector<OpenDimension>& dimensions);
  void setDimension(const std::string& name, int size);

  QComboBox* models_;
  QLabel* about_;
  std::string described_;  // the model that it is about
  QFormLayout* dimensions_form_;
  std::vector<OpenDimension> shown_;
  std::map<std::string, QSpinBox*> dimensions_;
};

}  // namespace sibyl::gui
