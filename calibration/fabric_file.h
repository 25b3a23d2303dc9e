// The `fabric` of a cluster file: docs/formats/cluster.md.
#pragma once

#include <string>

#include "base/result.h"
#include "netmodel/fabric/spec.h"
#include "netmodel/topology.h"

namespace YAML {
class Node;
}

namespace sibyl {

// A switch's latency and oversubscription go to `topology`.
Result<fabric::FabricSpec> read_fabric(const YAML::Node& node, const std::string& file, TopologySpec& topology);

}  // namespace sibyl
