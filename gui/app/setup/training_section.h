// How it is trained: batch, precision, optimizer, whose framework; and what an epoch and a device-hour are.
#pragma once

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <cstdint>
#include <string>
#include <utility>
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
  QLayout* makeEpoch();
  QWidget* makeMore();
  void takeBatch(double samples, const QString& gesture);
  void takeUnit(int unit);
  void takeEpoch();
  void showEpoch(const Scenario& scenario);

  SteppedSlider* batch_slider_;
  QSpinBox* batch_;
  QComboBox* batch_unit_;  // of each device, of the step
  QLineEdit* epoch_;
  QLabel* epoch_wrong_;                                 // hidden where what was typed can be read
  std::pair<std::string, std::int64_t> epoch_shown_{};  // whose, and how many samples
  QDoubleSpinBox* price_;
  std::vector<OptionField*> fields_;
  int devices_ = 1;  // of the last answer
};

}  // namespace sibyl::gui
