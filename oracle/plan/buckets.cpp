#include "oracle/plan/buckets.h"

#include <algorithm>

namespace sibyl {

std::int64_t Bucket::bytes() const { return elements * static_cast<std::int64_t>(size_in_bytes(dtype)); }

std::vector<Bucket> make_buckets(const Stage& stage, const std::vector<LocalTensorId>& order, Bytes first_cap, Bytes cap) {
  std::vector<Bucket> buckets;
  Bucket open;
  for (const LocalTensorId parameter : order) {
    open.parameters.push_back(parameter);
    open.elements += element_count(stage[parameter].shape);
    const Bytes limit = buckets.empty() ? first_cap : cap;
    if (static_cast<double>(open.bytes()) >= limit.value()) {
      buckets.push_back(std::move(open));
      open = Bucket{};
    }
  }
  if (!open.parameters.empty()) buckets.push_back(std::move(open));
  return buckets;
}

GradientSync data_parallel_sync(const Stage& stage, const Strategy& strategy) {
  GradientSync sync;
  sync.axis = MeshAxis::data;
  sync.overlapped = strategy.exchange == GradientExchange::overlapped;
  const std::vector<LocalTensorId> arrival = gradient_order(stage);
  if (!sync.overlapped) {
    const Bytes everything{1e300};
    sync.buckets = make_buckets(stage, arrival, everything, everything);
    sync.first_buckets = sync.buckets;
    return sync;
  }
  std::vector<LocalTensorId> registration = arrival;
  std::sort(registration.begin(), registration.end());
  sync.first_buckets = make_buckets(stage, registration, strategy.first_bucket, strategy.bucket);
  std::reverse(sync.first_buckets.begin(), sync.first_buckets.end());
  sync.buckets = make_buckets(stage, arrival, strategy.first_bucket, strategy.bucket);
  return sync;
}

}  // namespace sibyl
