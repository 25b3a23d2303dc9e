#include "gui/view/canvas/views.h"

#include "gui/view/canvas/graph_view.h"
#include "gui/view/canvas/timeline_view.h"

namespace sibyl::gui {

std::vector<View*> canvasViews(QWidget* parent) { return {new TimelineView(parent), new GraphView(parent)}; }

}  // namespace sibyl::gui
