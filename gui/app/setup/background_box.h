// How much of the network's links others use, in percent of their bandwidth: a change of the cluster that is a share
// (calibration/cluster_change.h). What the cluster's own is stands there until another is given; below 0 it is so
// again.
#pragma once

#include <QDoubleSpinBox>
#include <string>

#include "gui/model/document.h"

namespace sibyl::gui {

class BackgroundBox : public QDoubleSpinBox {
  Q_OBJECT

 public:
  // `key`: "nic.background"; `meaning`: of which links.
  BackgroundBox(std::string key, const QString& name, const QString& meaning, Document& document, QWidget* parent);

  [[nodiscard]] const std::string& key() const { return key_; }
  void showScenario(const Scenario& scenario);
  // The cluster's own share, from 0 to 1, and whether it has anything to send over these links.
  void setUsual(double share, bool crossed);
  void stepBy(int steps) override;

 protected:
  [[nodiscard]] StepEnabled stepEnabled() const override;
  [[nodiscard]] QString textFromValue(double value) const override;

 private:
  void take(double percent);
  void showWords();
  [[nodiscard]] bool isUsual() const { return value() <= minimum(); }

  std::string key_;
  Document& document_;
  QString meaning_;
  double usual_ = 0;    // percent
  bool known_ = false;  // what the cluster's own is
  bool crossed_ = true;
  QString unreadable_;  // what the scenario says where it is no share
};

}  // namespace sibyl::gui
