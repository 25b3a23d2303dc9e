#include "gui/app/setup/change_row.h"

#include <cmath>
#include <map>

#include "gui/app/setup/gesture.h"
#include "gui/app/text.h"

namespace sibyl::gui {
namespace {

constexpr int octaves = 3, steps_of_octave = 4;  // from 1/8 to 8, four steps for each doubling

std::vector<double> factors() {
  std::vector<double> all;
  for (int step = -octaves * steps_of_octave; step <= octaves * steps_of_octave; ++step)
    all.push_back(std::exp2(static_cast<double>(step) / steps_of_octave));
  return all;
}

// As short as can be.
QString inputTitle(const std::string& key) {
  static const std::map<std::string, QString> titles = {{"link.bandwidth", ChangeRow::tr("Link rate")},
                                                        {"link.latency", ChangeRow::tr("Link latency")},
                                                        {"nic.bandwidth", ChangeRow::tr("NIC rate")},
                                                        {"nic.latency", ChangeRow::tr("NIC latency")},
                                                        {"nic.per_node", ChangeRow::tr("NICs of a node")},
                                                        {"switch.latency", ChangeRow::tr("Switch latency")},
                                                        {"switch.oversubscription", ChangeRow::tr("Oversubscr.")},
                                                        {"device.flops", ChangeRow::tr("Peak FLOPs")},
                                                        {"device.memory", ChangeRow::tr("Memory")},
                                                        {"device.memory_bandwidth", ChangeRow::tr("Memory rate")},
                                                        {"device.dispatch", ChangeRow::tr("Dispatch")},
                                                        {"host_link.bandwidth", ChangeRow::tr("Host link rate")},
                                                        {"storage.bandwidth", ChangeRow::tr("Storage rate")}};
  const auto found = titles.find(key);
  return found == titles.end() ? text(key) : found->second;
}

}  // namespace

ChangeRow::ChangeRow(const ClusterKey& key, Document& document, QGridLayout& grid, QWidget* parent)
    : QObject(parent),
      key_(key.name),
      document_(document),
      label_(new QLabel(inputTitle(key_), parent)),
      slider_(new SteppedSlider(factors(), parent)),
      box_(new QLineEdit(parent)),
      reset_(new QToolButton(parent)),
      tip_(tr("%1: %2\nA factor as 2x or 0.5x, or a value as %3\nCommand line: --set %1=…")
               .arg(text(key.name), text(key.says), text(key.takes))) {
  label_->setBuddy(box_);
  slider_->setObjectName("slider " + text(key_));
  slider_->setAccessibleName(tr("%1, factor").arg(inputTitle(key_)));
  slider_->setTickPosition(QSlider::NoTicks);
  box_->setObjectName("--set " + text(key_));
  box_->setAccessibleName(inputTitle(key_));
  box_->setMinimumWidth(52);
  reset_->setText(QStringLiteral("×"));
  reset_->setAutoRaise(true);
  reset_->setToolTip(tr("Take this change back"));
  reset_->setAccessibleName(tr("Take back: %1").arg(inputTitle(key_)));
  const int row = grid.rowCount();
  grid.addWidget(label_, row, 0);
  grid.addWidget(slider_, row, 1);
  grid.addWidget(box_, row, 2);
  grid.addWidget(reset_, row, 3);
  showValue({});
  connect(slider_, &SteppedSlider::chosen, this,
          [this](double factor) { take(QString::number(factor, 'g', 3) + "x", "set " + text(key_)); });
  endGestures(*slider_, document_);
  connect(box_, &QLineEdit::editingFinished, this, [this] {
    if (box_->text().trimmed() != text(document_.current().change(key_).value_or(""))) take(box_->text().trimmed(), {});
  });
  connect(reset_, &QToolButton::clicked, this, [this] { take({}, {}); });
}

void ChangeRow::take(const QString& value, const QString& gesture) {
  document_.change(
      tr("Change %1").arg(text(key_)),
      [&](Scenario& scenario) {
        scenario.set_change(key_, value == QLatin1String("1x") ? std::string() : value.toStdString());
      },
      gesture);
}

void ChangeRow::showScenario(const Scenario& scenario) {
  const bool changed = scenario.change(key_).has_value();
  const QString change = text(scenario.change(key_).value_or(""));
  box_->setText(change);
  const double factor = change.endsWith('x') ? change.chopped(1).toDouble() : 1;
  slider_->showValue(factor > 0 ? factor : 1);
  reset_->setEnabled(changed);
  QFont font = label_->font();
  font.setBold(changed);
  label_->setFont(font);
}

void ChangeRow::showValue(const QString& value) {
  box_->setPlaceholderText(value.isEmpty() ? tr("not known") : value);
  const QString all = value.isEmpty() ? tip_ : tip_ + "\n" + tr("Now: %1").arg(value);
  for (QWidget* widget : {static_cast<QWidget*>(label_), static_cast<QWidget*>(slider_), static_cast<QWidget*>(box_)})
    widget->setToolTip(all);
}

}  // namespace sibyl::gui
