#include "oracle/reading.h"

#include <algorithm>

namespace sibyl {
namespace {

// What one rank of the stage takes in for one micro-batch.
Bytes input_bytes(const Stage& stage) {
  Bytes bytes;
  for (const LocalTensor& tensor : stage.tensors)
    if (tensor.kind == TensorKind::input)
      bytes += Bytes{static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype)};
  return bytes;
}

}  // namespace

Result<Seconds> reading_time(const Plan& plan, const Cluster& cluster) {
  if (plan.strategy.data_source == DataSource::memory) return Seconds{};
  if (cluster.storage_read.value() <= 0)
    return fail("how fast storage reads is not known of " + cluster.name, "--data-from",
                "`sibyl calibrate io` measures it; a cluster.yaml says `storage: {bandwidth: 2GB/s}`");
  Bytes largest;
  for (const Stage& stage : plan.stages) largest = std::max(largest, input_bytes(stage));
  const int readers = std::min(plan.strategy.devices(), cluster.devices_per_node);
  return largest * static_cast<double>(readers) * static_cast<double>(plan.strategy.accumulation) /
         cluster.storage_read;
}

}  // namespace sibyl
