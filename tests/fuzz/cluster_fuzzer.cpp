// libFuzzer target: any bytes as a cluster file give a ClusterFile or an Error, and its network prices messages in
// numbers that are numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "calibration/cluster_file.h"
#include "netmodel/network.h"

namespace sibyl {
namespace {

void check(const ClusterFile& file) {
  auto topology = Topology::make(file.topology);
  if (!topology) return;
  const Network network(std::move(*topology), {}, {}, file.algorithm);
  const GroupPlacement all{file.topology.devices_per_node, file.topology.nodes, 1};
  for (const double bytes : {1.0, 1e5, 1e9}) {
    const CollectiveEstimate estimate = network.collective(Collective::all_reduce, Bytes{bytes}, all);
    if (!std::isfinite(estimate.time.time.value()) || estimate.time.time.value() < 0) std::abort();
  }
}

}  // namespace
}  // namespace sibyl

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto file = sibyl::parse_cluster_file(text, "fuzz.yaml")) sibyl::check(*file);
  return 0;
}
