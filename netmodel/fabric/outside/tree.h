// The extended generalised fat tree that fat tree, leaf-spine and rail-optimised are.
#pragma once

#include "netmodel/fabric/outside.h"

namespace sibyl::fabric {

// `shape.down` and `up` are checked here. NICs are numbered as they lie under the leaves: node by node, or (by_rail)
// all first ones, then all second ones.
Result<Wiring> build_tree(const FatTree& shape, const Site& site, bool by_rail, Graph& graph);

}  // namespace sibyl::fabric
