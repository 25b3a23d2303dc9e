// Lays a directed graph out in layers from top to bottom (Sugiyama, Tagawa and Toda, "Methods for visual understanding
// of hierarchical system structures", 1981): nodes into layers by their longest path, long edges through points of the
// layers between, each layer ordered by the barycentres of its neighbours, places across by least squares that keep
// order and distance.
//
// Nodes come in an order in which they could run: edges lead from lower to higher numbers; one that does not is laid
// out as if it were turned round. No two boxes overlap. The same for the same input.
#pragma once

#include <cstddef>
#include <vector>

namespace sibyl::gui {

struct LayoutPoint {
  double x = 0, y = 0;
};

struct LayoutBox {
  double x = 0, y = 0, width = 0, height = 0;  // x, y: of the upper left corner

  [[nodiscard]] double middle() const { return x + width / 2; }
  [[nodiscard]] double bottom() const { return y + height; }
  [[nodiscard]] bool contains(double px, double py) const {
    return px >= x && px < x + width && py >= y && py < y + height;
  }
};

struct LayoutEdge {
  std::size_t from = 0, to = 0;
};

struct LayoutSpacing {
  double across = 28, down = 40;  // between nodes of a layer, between layers
};

struct GraphLayout {
  std::vector<LayoutBox> boxes;     // by node
  std::vector<std::size_t> layers;  // by node
  std::vector<std::vector<LayoutPoint>>
      routes;  // by edge: from the lower side of its first node to the upper of its last
  double width = 0, height = 0;
};

// `sizes`: width and height of each node; edges without doubles.
GraphLayout lay_out(const std::vector<LayoutBox>& sizes, const std::vector<LayoutEdge>& edges,
                    const LayoutSpacing& spacing = {});

}  // namespace sibyl::gui
