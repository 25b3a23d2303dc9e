#include "oracle/plan/buckets.h"

#include <algorithm>
#include <map>
#include <set>

namespace sibyl {

std::int64_t Bucket::bytes() const { return elements * static_cast<std::int64_t>(size_in_bytes(summed)); }
std::int64_t Bucket::parameter_bytes() const { return elements * static_cast<std::int64_t>(size_in_bytes(dtype)); }

std::vector<Bucket> make_buckets(const Stage& stage, const std::vector<LocalTensorId>& order, Bytes first_cap,
                                 Bytes cap) {
  struct Open {
    Bucket bucket;
    Bytes cap;
  };
  std::vector<Bucket> buckets;
  std::vector<Open> open;  // of each type one at most, as they were begun
  std::set<DType> begun;
  for (const LocalTensorId parameter : order) {
    const DType dtype = stage[parameter].dtype;
    auto own = std::ranges::find(open, dtype, [](const Open& one) { return one.bucket.dtype; });
    if (own == open.end()) {
      Bucket bucket;
      bucket.dtype = dtype;
      bucket.summed = stage[parameter].gradient_type();
      open.push_back({std::move(bucket), begun.insert(dtype).second ? first_cap : cap});
      own = open.end() - 1;
    }
    own->bucket.parameters.push_back(parameter);
    own->bucket.elements += element_count(stage[parameter].shape);
    if (static_cast<double>(own->bucket.bytes()) < own->cap.value()) continue;
    buckets.push_back(std::move(own->bucket));
    open.erase(own);
  }
  for (Open& left : open) buckets.push_back(std::move(left.bucket));
  return buckets;
}

namespace {

// The axes whose ranks each make a summand of this parameter's gradient, in the mesh's order.
std::vector<MeshAxis> axes_of(const LocalTensor& parameter, const Strategy& strategy) {
  std::vector<MeshAxis> axes = parameter.summed_over;
  if (strategy.data > 1) axes.push_back(MeshAxis::data);
  std::sort(axes.begin(), axes.end());
  return axes;
}

GradientSync gradient_sync(const Stage& stage, const Strategy& strategy, std::vector<MeshAxis> axes,
                           const std::vector<LocalTensorId>& arrival) {
  GradientSync sync;
  sync.axes = std::move(axes);
  sync.overlapped = strategy.exchange == GradientExchange::overlapped;
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

// Stages finish at different times, and the first of them last: there is nothing to hide behind.
GradientSync tied_sync(const Stage& stage, std::vector<MeshAxis> axes, const std::vector<int>& stages,
                       const std::vector<LocalTensorId>& parameters) {
  GradientSync sync;
  sync.axes = std::move(axes);
  sync.axes.push_back(MeshAxis::pipeline);
  sync.overlapped = false;
  sync.stages = stages;
  const Bytes everything{1e300};
  sync.buckets = make_buckets(stage, parameters, everything, everything);
  sync.first_buckets = sync.buckets;
  return sync;
}

}  // namespace

std::vector<GradientSync> gradient_syncs(const Stage& stage, const Strategy& strategy,
                                         const std::map<LocalTensorId, Tie>& ties) {
  using Axes = std::vector<MeshAxis>;
  std::map<Axes, std::vector<LocalTensorId>> groups;  // each in arrival order
  std::map<std::pair<Axes, std::vector<int>>, std::map<std::size_t, LocalTensorId>> tied;
  for (const LocalTensorId parameter : gradient_order(stage)) {
    const Axes axes = axes_of(stage[parameter], strategy);
    if (const auto tie = ties.find(parameter); tie != ties.end())
      tied[{axes, tie->second.stages}][tie->second.number] = parameter;
    else
      groups[axes].push_back(parameter);
  }
  std::vector<GradientSync> syncs;
  for (const auto& [axes, parameters] : groups)
    if (!axes.empty()) syncs.push_back(gradient_sync(stage, strategy, axes, parameters));
  for (const auto& [where, numbered] : tied) {
    std::vector<LocalTensorId> parameters;
    for (const auto& [number, parameter] : numbered) parameters.push_back(parameter);
    syncs.push_back(tied_sync(stage, where.first, where.second, parameters));
  }
  return syncs;
}

}  // namespace sibyl
