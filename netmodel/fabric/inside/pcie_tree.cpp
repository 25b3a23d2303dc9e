// Devices and NICs under PCIe switches, these under sockets (NUMA nodes), which are joined pairwise. A device's latency
// is that of two hops: under another switch it is twice as far.
#include "netmodel/fabric/inside.h"

namespace sibyl::fabric {

Result<Ports> join(const PcieTree& shape, const TopologySpec& spec, Graph& graph) {
  if (shape.sockets < 1 || shape.sockets > 16 || shape.switches_per_socket < 1 || shape.switches_per_socket > 16)
    return fail("a PCIe tree has 1 to 16 sockets of 1 to 16 switches");
  const Seconds hop = spec.device_link.latency / 2;
  const BytesPerSecond uplink = shape.uplink.value() > 0 ? shape.uplink : spec.device_link.bandwidth;
  std::vector<VertexId> sockets, switches;
  for (int i = 0; i < shape.sockets; ++i) sockets.push_back(graph.add(Place::bridge, -1, i, "socket"));
  for (std::size_t a = 0; a < sockets.size(); ++a)
    for (std::size_t b = a + 1; b < sockets.size(); ++b)
      graph.cable(sockets[a], sockets[b], shape.between_sockets, Reach::inside);
  const int count = shape.sockets * shape.switches_per_socket;
  for (int i = 0; i < count; ++i) {
    switches.push_back(graph.add(Place::bridge, -1, i, "PCIe switch"));
    graph.cable(switches.back(), sockets[static_cast<std::size_t>(i / shape.switches_per_socket)],
                {uplink, hop, Duplex::full}, Reach::inside);
  }
  const auto of = [&](int i, int all) { return switches[static_cast<std::size_t>(i * count / all)]; };
  for (int device = 0; device < spec.devices_per_node; ++device)
    graph.cable(static_cast<VertexId>(device), of(device, spec.devices_per_node),
                {spec.device_link.bandwidth, hop, Duplex::full}, Reach::inside);
  Ports ports;
  for (int nic = 0; nic < spec.nics_per_node; ++nic) ports.of_nic.push_back({of(nic, spec.nics_per_node)});
  return ports;
}

}  // namespace sibyl::fabric
