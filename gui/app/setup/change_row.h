// One part of the cluster that can be different: its name, a slider over factors of it, a box for any value or factor,
// and a button that takes the change back. One row of a grid.
#pragma once

#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>

#include "calibration/cluster_change.h"
#include "gui/app/setup/stepped_slider.h"
#include "gui/model/document.h"

namespace sibyl::gui {

class ChangeRow : public QObject {
  Q_OBJECT

 public:
  ChangeRow(const ClusterKey& key, Document& document, QGridLayout& grid, QWidget* parent);

  void showScenario(const Scenario& scenario);
  void showValue(const QString& value);  // what it is without a change
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] bool isChanged() const { return reset_->isEnabled(); }

 private:
  void take(const QString& value, const QString& gesture);

  std::string key_;
  Document& document_;
  QLabel* label_;
  SteppedSlider* slider_;
  QLineEdit* box_;
  QToolButton* reset_;
  QString tip_;
};

}  // namespace sibyl::gui
