#include "oracle/plan/buckets.h"

#include <algorithm>
#include <map>

namespace sibyl {

std::int64_t Bucket::bytes() const { return elements * static_cast<std::int64_t>(size_in_bytes(dtype)); }

std::vector<Bucket> make_buckets(const Stage& stage, const std::vector<LocalTensorId>& order, Bytes first_cap,
                                 Bytes cap) {
  std::vector<Bucket> buckets;
  Bucket open;
  for (const LocalTensorId parameter : order) {
    if (!open.parameters.empty() && stage[parameter].dtype != open.dtype) {
      buckets.push_back(std::move(open));
      open = Bucket{};
    }
    open.dtype = stage[parameter].dtype;
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
