// A number that is somebody else's until it is given: at its least the box says what it is then ("128, the cluster's"),
// and steps go on from there.
#pragma once

#include <QSpinBox>

namespace sibyl::gui {

class CountBox : public QSpinBox {
  Q_OBJECT

 public:
  CountBox(int most, QWidget* parent);

  // What holds where nothing is given; `says` is shown then.
  void setUsual(int usual, const QString& says);
  // 0: not given. Tells nobody.
  void showValue(int value);
  void stepBy(int steps) override;

 protected:
  [[nodiscard]] StepEnabled stepEnabled() const override;

 private:
  int usual_ = 0;  // 0: not known
};

}  // namespace sibyl::gui
