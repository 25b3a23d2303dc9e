// Each device to the next, with half of its bandwidth on either side.
#include "netmodel/fabric/inside.h"

namespace sibyl::fabric {

Result<Ports> join(const InnerRing& /*shape*/, const TopologySpec& spec, Graph& graph) {
  const auto devices = static_cast<VertexId>(spec.devices_per_node);
  const LinkRate link{spec.device_link.bandwidth / 2, spec.device_link.latency, Duplex::full};
  // Two devices have both links between them.
  for (VertexId device = 0; devices > 1 && device < devices; ++device)
    graph.cable(device, (device + 1) % devices, link, Reach::inside);
  return Ports{{}, true};
}

}  // namespace sibyl::fabric
