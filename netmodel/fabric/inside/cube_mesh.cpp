// NVIDIA's DGX-1 (whitepaper WP-08437-001, 2017): two quads of four devices, all joined within a quad, each device to
// its twin in the other. With P100 (4 links of a device) each of these is one link; with V100 (6 links) some are two,
// as `nvidia-smi topo -m` shows.
#include <array>

#include "netmodel/fabric/inside.h"

namespace sibyl::fabric {
namespace {

struct Pair {
  VertexId a, b;
  int links_of_v100;
};
constexpr std::array<Pair, 16> pairs{{{0, 1, 1},
                                      {0, 2, 1},
                                      {0, 3, 2},
                                      {1, 2, 2},
                                      {1, 3, 1},
                                      {2, 3, 2},
                                      {4, 5, 1},
                                      {4, 6, 1},
                                      {4, 7, 2},
                                      {5, 6, 2},
                                      {5, 7, 1},
                                      {6, 7, 2},
                                      {0, 4, 2},
                                      {1, 5, 2},
                                      {2, 6, 1},
                                      {3, 7, 1}}};

}  // namespace

Result<Ports> join(const CubeMesh& shape, const TopologySpec& spec, Graph& graph) {
  if (spec.devices_per_node != 8) return fail("a hybrid cube mesh has 8 devices");
  if (shape.links != 4 && shape.links != 6) return fail("a device of a hybrid cube mesh has 4 or 6 links");
  for (const auto& [a, b, links_of_v100] : pairs) {
    const int links = shape.links == 6 ? links_of_v100 : 1;
    graph.cable(a, b, {spec.device_link.bandwidth * links / shape.links, spec.device_link.latency, Duplex::full},
                Reach::inside);
  }
  return Ports{{}, true};
}

}  // namespace sibyl::fabric
