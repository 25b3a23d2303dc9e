// Each node to each other one.
#include "netmodel/fabric/outside.h"

namespace sibyl::fabric {

Result<Wiring> build(const FullyConnected& /*shape*/, const Site& site, Graph& graph) {
  if (site.nodes > 2048) return fail("a fully connected fabric has at most 2048 nodes");
  Neighbours rule;
  Wiring result = add_node_routers(site, site.nodes, graph, rule.routers);
  const auto count = static_cast<std::size_t>(site.nodes);
  rule.edges.assign(count * count, -1);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b) {
      const auto from = rule.routers.first + static_cast<VertexId>(a),
                 to = rule.routers.first + static_cast<VertexId>(b);
      const EdgeId edge = graph.cable(from, to, site.between_routers(), Reach::between);
      rule.edges[a * count + b] = edge;
      rule.edges[b * count + a] = edge + 1;
    }
  result.routing = std::move(rule);
  return result;
}

}  // namespace sibyl::fabric
