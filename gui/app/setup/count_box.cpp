#include "gui/app/setup/count_box.h"

#include <QSignalBlocker>

#include "gui/app/setup/section.h"

namespace sibyl::gui {

CountBox::CountBox(int most, QWidget* parent) : QSpinBox(parent) {
  constexpr int narrow = 5;
  setRange(0, most);
  setSpecialValueText(tr("as it has"));
  setKeyboardTracking(false);
  setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  setMinimumWidth(narrow * fontMetrics().height());
  guardWheel(this);
}

void CountBox::setUsual(int usual, const QString& says) {
  usual_ = usual;
  setSpecialValueText(says);
}

void CountBox::showValue(int value) {
  const QSignalBlocker quiet(this);
  setValue(value);
}

void CountBox::stepBy(int steps) {
  if (value() == 0 && usual_ > 0) showValue(usual_);
  QSpinBox::stepBy(steps);
}

QAbstractSpinBox::StepEnabled CountBox::stepEnabled() const {
  if (value() > 0 || usual_ == 0) return QSpinBox::stepEnabled();
  return usual_ > 1 ? StepUpEnabled | StepDownEnabled : StepUpEnabled;
}

}  // namespace sibyl::gui
