// How it is trained: batch, precision, optimizer, whose framework; and what an epoch and a device-hour are.
#pragma once

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QSpinBox>
#include <vector>

#include "gui/app/setup/option_field.h"
#include "gui/app/setup/section.h"
#include "gui/app/setup/stepped_slider.h"

namespace sibyl::gui {

class TrainingSection : public ScenarioSection {
  Q_OBJECT

 public:
  TrainingSection(Document& document, QWidget* parent);

  void showScenario(const Scenario& scenario) override;
  void showAnswer(const Answer& answer) override;

 private:
  QWidget* makeBatch();
  QWidget* makeMore();
  void takeBatch(double samples, const QString& gesture);
  void takeUnit(int unit);

  SteppedSlider* batch_slider_;
  QSpinBox* batch_;
  QComboBox* batch_unit_;  // of each device, of the step
  QLineEdit* epoch_;
  QDoubleSpinBox* price_;
  std::vector<OptionField*> fields_;
  int devices_ = 1;  // of the last answer
};

}  // namespace sibyl::gui
