#include "gui/view/charts/views.h"

#include "gui/view/charts/breakdown_view.h"
#include "gui/view/charts/memory_view.h"
#include "gui/view/charts/scaling_view.h"
#include "gui/view/charts/search_view.h"
#include "gui/view/charts/sensitivity_view.h"

namespace sibyl::gui {

std::vector<View*> chartViews(QWidget* parent) {
  return {new ScalingView(parent), new BreakdownView(parent), new MemoryView(parent), new SearchView(parent),
          new SensitivityView(parent)};
}

}  // namespace sibyl::gui
