#include "gui/app/setup/gesture.h"

namespace sibyl::gui {

void endGestures(QAbstractSpinBox& box, Document& document) {
  QObject::connect(&box, &QAbstractSpinBox::editingFinished, &document, &Document::endGesture);
}

void endGestures(QAbstractSlider& slider, Document& document) {
  QObject::connect(&slider, &QAbstractSlider::sliderPressed, &document, &Document::holdGesture);
  QObject::connect(&slider, &QAbstractSlider::sliderReleased, &document, &Document::endGesture);
}

}  // namespace sibyl::gui
