// The views made of charts and tables, in the order of their tabs.
#pragma once

#include <vector>

#include "gui/view/view.h"

namespace sibyl::gui {

std::vector<View*> chartViews(QWidget* parent);

}  // namespace sibyl::gui
