// A link for each pair of devices.
#include "netmodel/fabric/inside.h"

namespace sibyl::fabric {

Result<Ports> join(const Mesh& /*shape*/, const TopologySpec& spec, Graph& graph) {
  const auto devices = static_cast<VertexId>(spec.devices_per_node);
  for (VertexId a = 0; a < devices; ++a)
    for (VertexId b = a + 1; b < devices; ++b)
      graph.cable(a, b,
                  {spec.device_link.bandwidth / (spec.devices_per_node - 1), spec.device_link.latency, Duplex::full},
                  Reach::inside);
  return Ports{{}, true};
}

}  // namespace sibyl::fabric
