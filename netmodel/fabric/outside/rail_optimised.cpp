// NVIDIA's DGX SuperPOD reference architecture (RA-11333, 2023): the i-th NICs of the nodes share leaves.
#include "netmodel/fabric/outside/tree.h"

namespace sibyl::fabric {

Result<Wiring> build(const RailOptimised& shape, const Site& site, Graph& graph) {
  SIBYL_CHECK(
      check_counts({{"nodes_per_leaf", shape.nodes_per_leaf}, {"leaves", shape.leaves}, {"spines", shape.spines}}));
  if (shape.leaves > most_cables / site.nics) return fail("too many leaves");
  SIBYL_TRY(Wiring result,
            build_tree({{shape.nodes_per_leaf, shape.leaves * site.nics}, {shape.spines}}, site, true, graph));
  result.choose_rail = shape.cross_inside;
  return result;
}

}  // namespace sibyl::fabric
