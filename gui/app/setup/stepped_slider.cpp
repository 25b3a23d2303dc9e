#include "gui/app/setup/stepped_slider.h"

#include <QSignalBlocker>
#include <cmath>

#include "gui/app/setup/section.h"

namespace sibyl::gui {

SteppedSlider::SteppedSlider(std::vector<double> stops, QWidget* parent)
    : QSlider(Qt::Horizontal, parent), stops_(std::move(stops)) {
  setRange(0, static_cast<int>(stops_.size()) - 1);
  setPageStep(2);
  setMinimumWidth(60);
  guardWheel(this);
  connect(this, &QSlider::valueChanged, this,
          [this](int stop) { emit chosen(stops_[static_cast<std::size_t>(stop)]); });
}

void SteppedSlider::showValue(double value) {
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < stops_.size(); ++i)
    if (std::abs(std::log(stops_[i] / value)) < std::abs(std::log(stops_[nearest] / value))) nearest = i;
  const QSignalBlocker quiet(this);
  setValue(static_cast<int>(nearest));
}

}  // namespace sibyl::gui
