// Every leaf to every spine.
#include "netmodel/fabric/outside/tree.h"

namespace sibyl::fabric {

Result<Wiring> build(const LeafSpine& shape, const Site& site, Graph& graph) {
  SIBYL_CHECK(
      check_counts({{"nodes_per_leaf", shape.nodes_per_leaf}, {"leaves", shape.leaves}, {"spines", shape.spines}}));
  if (shape.nodes_per_leaf > most_cables / site.nics) return fail("too many NICs under a leaf");
  return build_tree({{shape.nodes_per_leaf * site.nics, shape.leaves}, {shape.spines}}, site, false, graph);
}

}  // namespace sibyl::fabric
