// A slider over a list of ascending values, most often far apart: batches, factors.
#pragma once

#include <QSlider>
#include <vector>

namespace sibyl::gui {

class SteppedSlider : public QSlider {
  Q_OBJECT

 public:
  SteppedSlider(std::vector<double> stops, QWidget* parent);

  // The nearest stop, by ratio. Tells nobody.
  void showValue(double value);

 signals:
  void chosen(double value);  // by hand

 private:
  std::vector<double> stops_;
};

}  // namespace sibyl::gui
