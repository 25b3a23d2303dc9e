// The views that are painted: the timeline, the graph, in the order of their tabs.
#pragma once

#include <vector>

#include "gui/view/view.h"

namespace sibyl::gui {

std::vector<View*> canvasViews(QWidget* parent);

}  // namespace sibyl::gui
