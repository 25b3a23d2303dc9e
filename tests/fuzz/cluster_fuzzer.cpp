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

// A fabric as large as it may be takes seconds; the fuzzer looks for what is wrong, not for what is slow.
bool is_small(const ClusterFile& file) {
  return file.topology.nodes <= 64 && file.topology.devices_per_node <= 16 && file.topology.nics_per_node <= 16;
}

Result<Network> network_of(const ClusterFile& file) {
  if (file.shape) return Network::on_fabric(file.topology, *file.shape, {}, {}, file.algorithm);
  SIBYL_TRY(Topology topology, Topology::make(file.topology));
  return Network(std::move(topology), {}, {}, file.algorithm);
}

void check(const ClusterFile& file) {
  if (file.shape && !is_small(file)) return;
  const auto made = network_of(file);
  if (!made) return;
  const Network& network = *made;
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
