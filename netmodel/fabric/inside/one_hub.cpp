// Devices around one point without a limit of its own: what a device link's bandwidth and latency say by themselves.
#include "netmodel/fabric/inside.h"

namespace sibyl::fabric {

Result<Ports> join(const OneHub& /*shape*/, const TopologySpec& spec, Graph& graph) {
  const VertexId hub = graph.add(Place::bridge, -1, 0, "hub");
  for (VertexId device = 0; device < static_cast<VertexId>(spec.devices_per_node); ++device)
    graph.cable(device, hub, {spec.device_link.bandwidth, spec.device_link.latency / 2, Duplex::full}, Reach::inside);
  return Ports{};
}

}  // namespace sibyl::fabric
