#include "gui/app/setup/background_box.h"

#include <QSignalBlocker>
#include <utility>

#include "calibration/cluster_change.h"
#include "gui/app/setup/gesture.h"
#include "gui/app/setup/section.h"
#include "gui/app/text.h"

namespace sibyl::gui {
namespace {

constexpr double percent_of_all = 100, percent_step = 5;
constexpr double not_given = -1;

}  // namespace

BackgroundBox::BackgroundBox(std::string key, const QString& name, const QString& meaning, Document& document,
                             QWidget* parent)
    : QDoubleSpinBox(parent), key_(std::move(key)), document_(document), meaning_(meaning) {
  constexpr int narrow = 5;
  setObjectName("--set " + gui::text(key_));
  setAccessibleName(name);
  setDecimals(1);
  setRange(not_given, most_share * percent_of_all);
  setSingleStep(percent_step);
  setSuffix(tr(" %"));
  setKeyboardTracking(false);
  setMinimumWidth(narrow * fontMetrics().height());
  guardWheel(this);
  setValue(not_given);
  showWords();
  connect(this, &QDoubleSpinBox::valueChanged, this, &BackgroundBox::take);
  endGestures(*this, document_);
}

void BackgroundBox::take(double percent) {
  document_.change(
      tr("Change %1").arg(gui::text(key_)),
      [&](Scenario& scenario) {
        scenario.set_change(
            key_, percent < 0 ? std::string() : QString::number(percent / percent_of_all, 'g', 4).toStdString());
      },
      gui::text(key_));
}

void BackgroundBox::showScenario(const Scenario& scenario) {
  const QString change = gui::text(scenario.change(key_).value_or(""));
  bool number = false;
  const double share = change.toDouble(&number);
  const bool readable = number && share >= 0 && share <= most_share;
  unreadable_ = readable ? QString() : change;
  {
    const QSignalBlocker quiet(this);
    setValue(readable ? share * percent_of_all : not_given);
  }
  showWords();
}

void BackgroundBox::setUsual(double share, bool crossed) {
  usual_ = share * percent_of_all;
  known_ = true;
  crossed_ = crossed;
  showWords();
}

void BackgroundBox::showWords() {
  const QString own = textFromValue(usual_) + suffix();
  setSpecialValueText(!unreadable_.isEmpty() ? unreadable_
                      : known_               ? tr("%1 (the cluster's)").arg(own)
                                             : tr("as it has"));
  // What has no effect can still be taken back.
  setEnabled(crossed_ || !isUsual() || !unreadable_.isEmpty());
  setToolTip(tr("%1: %2\nThe share of its bandwidth that others use (other jobs, storage), from 0 to 99 %; the rest is "
                "left for this job, and latencies stay\nCommand line: --set %3=0.3")
                 .arg(meaning_, isUsual() ? specialValueText() : textFromValue(value()) + suffix(), gui::text(key_)));
}

QString BackgroundBox::textFromValue(double value) const { return locale().toString(value, 'g', 3); }

void BackgroundBox::stepBy(int steps) {
  if (isUsual()) {
    const QSignalBlocker quiet(this);
    setValue(usual_);
  }
  if (value() > 0 && value() + steps * singleStep() < 0) return setValue(0);
  QDoubleSpinBox::stepBy(steps);
}

QAbstractSpinBox::StepEnabled BackgroundBox::stepEnabled() const {
  if (!isUsual()) return QDoubleSpinBox::stepEnabled();
  return usual_ <= 0           ? StepEnabled(StepUpEnabled)
         : usual_ >= maximum() ? StepEnabled(StepDownEnabled)
                               : StepUpEnabled | StepDownEnabled;
}

}  // namespace sibyl::gui
