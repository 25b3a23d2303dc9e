#include "netmodel/channels.h"

#include <algorithm>
#include <cmath>

namespace sibyl {
namespace {

constexpr double nvlink = 20e9;  // bytes a second of one link and direction, as NCCL counts Volta's and Ampere's
constexpr int most = 24;

int of_a_node(const LinkSpec& link) {
  const bool nvlinks = link.kind == LinkKind::nvlink_mesh || link.kind == LinkKind::nvswitch;
  const int rings = nvlinks ? static_cast<int>(std::lround(link.bandwidth.value() / nvlink)) : 1;
  return std::clamp(2 * rings, 1, most);
}

}  // namespace

int nccl_channels(const TopologySpec& cluster, int nodes) {
  const int inside = of_a_node(cluster.device_link);
  if (nodes < 2) return inside;
  const int between = 2 * cluster.nics_per_node;
  return cluster.devices_per_node > 1 ? std::min(inside, between) : std::min(most, between);
}

double slowdown_beside(int channels, int multiprocessors) {
  const int left = multiprocessors - channels;
  return left > 0 ? static_cast<double>(multiprocessors) / left : 1.0;
}

}  // namespace sibyl
