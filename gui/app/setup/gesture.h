// When changes made with a control end to be one step of undo: when the box is left or Return is pressed, when the
// slider's handle is let go. A pause ends them, too (gui/model/document.h).
#pragma once

#include <QAbstractSlider>
#include <QAbstractSpinBox>

#include "gui/model/document.h"

namespace sibyl::gui {

void endGestures(QAbstractSpinBox& box, Document& document);
void endGestures(QAbstractSlider& slider, Document& document);

}  // namespace sibyl::gui
