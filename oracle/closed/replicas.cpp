#include "oracle/closed/replicas.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "oracle/axes.h"
#include "oracle/cost/compression.h"
#include "oracle/cost/framework.h"

namespace sibyl::closed {

std::vector<MeshAxis> Replicas::axes(const std::vector<MeshAxis>& summed_over) const {
  std::vector<MeshAxis> axes = summed_over;
  if (strategy_.data > 1) axes.insert(std::upper_bound(axes.begin(), axes.end(), MeshAxis::data), MeshAxis::data);
  return axes;
}

int Replicas::parts(const std::vector<MeshAxis>& axes) const {
  if (strategy_.zero == 0 || std::ranges::none_of(axes, has_own_samples)) return 1;
  int parts = 1;
  for (const MeshAxis axis : axes) parts *= strategy_.degree(axis);
  return strategy_.zero_ranks > 0 ? parts / (strategy_.data / strategy_.zero_ranks) : parts;
}

Replicas::Group& Replicas::group(const std::vector<MeshAxis>& axes) {
  const auto [entry, added] = groups_.try_emplace(axes);
  Group& group = entry->second;
  if (!added) return group;
  group.sync.axes = axes;
  group.sync.parts = parts(axes);
  group.sync.compression = strategy_.compression;
  for (const MeshAxis axis : axes) group.sync.senders *= strategy_.degree(axis);
  if (group.sync.sharded() && strategy_.zero_ranks > 0) group.sync.copies = strategy_.data / strategy_.zero_ranks;
  group.where = placement(mesh_, group.sync, 0, cluster_->devices_per_node);
  group.gathered.placement = group.where.parts;
  return group;
}

const Replicas::Summed& Replicas::summed(std::int64_t elements, DType type, const std::vector<MeshAxis>& axes) {
  Group& group = this->group(axes);
  Hash hash;
  hash.add(static_cast<std::uint64_t>(elements)).add(static_cast<std::uint64_t>(type));
  const auto [known, added] = group.summed.try_emplace(hash.value());
  if (!added) return known->second;
  Bucket bucket;
  bucket.elements = elements;
  bucket.summed = type;
  Summed& summed = known->second;
  const PricedMessage message =
      price_bucket(group.sync, bucket, group.where, exchange_algorithm(strategy_, *cluster_), *cluster_);
  summed.sent = {message.estimate.time.time.value(), message.wire};
  const double factor = cluster_->composition.factor, launch = bare_launch(cluster_->kernels.device());
  const auto all = [&](const std::vector<KernelKey>& keys) {
    Kernels sum;
    for (const KernelKey& key : keys) {
      const double alone = kernels_->of(key, strategy_).estimate.time.time.value();
      sum.add({alone * factor, launch});
      summed.alone += alone;
    }
    return sum;
  };
  const CompressionKernels kernels = compression_kernels(group.sync, bucket);
  summed.compress = all(kernels.before);
  summed.decompress = all(kernels.after);
  summed.memory = compression_memory(group.sync, bucket);
  return summed;
}

const Replicas::Sent& Replicas::gathered(double bytes, const std::vector<MeshAxis>& axes) {
  return sent(Collective::all_gather, bytes, group(axes).gathered);
}

const Replicas::Sent& Replicas::sent(Collective collective, double bytes, const std::vector<MeshAxis>& axes) {
  const auto [entry, added] = known_.try_emplace(axes);
  Known& known = entry->second;
  if (added) known.placement = placement(mesh_, axes, cluster_->devices_per_node);
  return sent(collective, bytes, known);
}

const Replicas::Sent& Replicas::sent(Collective collective, double bytes, Known& group) const {
  Hash hash;
  hash.add(std::bit_cast<std::uint64_t>(bytes)).add(static_cast<std::uint64_t>(collective));
  const auto [known, first] = group.sent.try_emplace(hash.value());
  if (!first) return known->second;
  const Network& network = cluster_->network;
  const CollectiveEstimate estimate = network.collective(collective, Bytes{bytes}, group.placement);
  return known->second = {estimate.time.time.value(), network.wire_use(collective, estimate, group.placement)};
}

double Replicas::tied_seconds(double bytes, const std::vector<MeshAxis>& axes, const std::vector<int>& stages) {
  const auto [entry, added] = tied_.try_emplace({axes, stages});
  if (added) {
    GradientSync sync;
    sync.axes = axes;
    sync.axes.push_back(MeshAxis::pipeline);
    sync.stages = stages;
    const int first = stages.front() % mesh_.size(MeshAxis::pipeline) * mesh_.stride(MeshAxis::pipeline);
    entry->second.placement = placement(mesh_, sync, first, cluster_->devices_per_node).parts;
  }
  return sent(Collective::all_reduce, bytes, entry->second).seconds;
}

}  // namespace sibyl::closed
