// Draws a graph: nodes in the colours of their stages, marks for the axes that split them, what is sent on edges.
#pragma once

#include <QFont>
#include <QPainter>
#include <QPalette>

#include "gui/view/canvas/graph_model.h"

namespace sibyl::gui {

struct GraphLook {
  std::size_t hovered = static_cast<std::size_t>(-1), selected = static_cast<std::size_t>(-1);  // nodes
};

QColor stageColour(int stage, int stages, const QPalette& palette);
QColor axisColour(MeshAxis axis, const QPalette& palette);

// In the scene's coordinates: the painter's transformation places it. `seen`: nothing beside it needs to be drawn.
void paintGraph(QPainter& painter, const GraphModel& model, const GraphScene& scene, const GraphLook& look,
                const QRectF& seen, const QPalette& palette, const QFont& font);

}  // namespace sibyl::gui
