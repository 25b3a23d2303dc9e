// NVSwitch planes: each device has an equal share of its links on every plane, and messages are spread over all.
#include <fmt/format.h>

#include "netmodel/fabric/inside.h"

namespace sibyl::fabric {

Result<Ports> join(const NvSwitch& shape, const TopologySpec& spec, Graph& graph) {
  if (shape.switches < 1 || shape.switches > 64)
    return fail(fmt::format("{} NVSwitches: 1 to 64 are known", shape.switches));
  for (int plane = 0; plane < shape.switches; ++plane) {
    const VertexId hub = graph.add(Place::bridge, -1, plane, "NVSwitch");
    const LinkRate link{spec.device_link.bandwidth / shape.switches, spec.device_link.latency / 2, Duplex::full};
    for (VertexId device = 0; device < static_cast<VertexId>(spec.devices_per_node); ++device)
      graph.cable(device, hub, link, Reach::inside);
  }
  return Ports{};
}

}  // namespace sibyl::fabric
