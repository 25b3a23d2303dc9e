// Rings, tori and meshes of any number of dimensions; an extent of 2 has one cable, not two.
#include <fmt/format.h>

#include "netmodel/fabric/outside.h"

namespace sibyl::fabric {

Result<Wiring> build(const Torus& shape, const Site& site, Graph& graph) {
  if (shape.dimensions.empty() || shape.dimensions.size() > 6) return fail("a torus has 1 to 6 dimensions");
  double room = 1;
  for (const int extent : shape.dimensions) {
    SIBYL_CHECK(check_counts({{"an extent of the torus", extent}}));
    room *= extent;
  }
  if (room * static_cast<double>(shape.dimensions.size()) > most_cables)
    return fail(fmt::format("a fabric has at most {:.0f} cables", most_cables));
  SIBYL_CHECK(check_room(room, site));
  DimensionOrder rule;
  rule.dimensions = shape.dimensions;
  rule.wraps = shape.wraps;
  const int nodes = static_cast<int>(room);
  Wiring result = add_node_routers(site, nodes, graph, rule.routers);
  const std::size_t count = shape.dimensions.size();
  rule.edges.assign(static_cast<std::size_t>(nodes) * count * 2, -1);
  int stride = 1;
  for (std::size_t d = 0; d < count; ++d) {
    const int extent = shape.dimensions[d];
    for (int a = 0; a < nodes; ++a) {
      const int at = a / stride % extent;
      if (extent == 1 || (at == extent - 1 && (!shape.wraps || extent == 2))) continue;
      const int b = at == extent - 1 ? a - (extent - 1) * stride : a + stride;
      const EdgeId edge =
          graph.cable(rule.routers.first + static_cast<VertexId>(a), rule.routers.first + static_cast<VertexId>(b),
                      site.between_routers(), Reach::between);
      const auto slot = [&](int router, std::size_t back) -> std::int64_t& {
        return rule.edges[(static_cast<std::size_t>(router) * count + d) * 2 + back];
      };
      slot(a, 0) = edge;
      slot(b, 1) = edge + 1;
      if (extent == 2) slot(a, 1) = edge, slot(b, 0) = edge + 1;
    }
    stride *= extent;
  }
  result.routing = std::move(rule);
  return result;
}

}  // namespace sibyl::fabric
