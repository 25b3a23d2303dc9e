#include "oracle/reading.h"

#include <algorithm>

namespace sibyl {
namespace {

// What one rank of the stage takes in for one micro-batch.
Bytes input_bytes(const Stage& stage) {
  Bytes bytes;
  for (const LocalTensor& tensor : stage.tensors) bytes += input_bytes(tensor);
  return bytes;
}

}  // namespace

Bytes input_bytes(const LocalTensor& tensor) {
  if (tensor.kind != TensorKind::input) return {};
  return Bytes{static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype)};
}

Result<Seconds> reading_time(Bytes inputs, const Strategy& strategy, const Cluster& cluster) {
  if (strategy.data_source == DataSource::memory) return Seconds{};
  if (cluster.storage_read.value() <= 0)
    return fail("how fast storage reads is not known of " + cluster.name, "--data-from",
                "`sibyl calibrate io` measures it; a cluster.yaml says `storage: {bandwidth: 2GB/s}`");
  const int readers = std::min(strategy.devices(), cluster.devices_per_node);
  return inputs * static_cast<double>(readers) * static_cast<double>(strategy.accumulation) / cluster.storage_read;
}

Result<Seconds> reading_time(const Plan& plan, const Cluster& cluster) {
  Bytes largest;
  for (const Stage& stage : plan.stages) largest = std::max(largest, input_bytes(stage));
  return reading_time(largest, plan.strategy, cluster);
}

}  // namespace sibyl
