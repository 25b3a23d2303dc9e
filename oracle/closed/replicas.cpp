#include "oracle/closed/replicas.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "oracle/axes.h"

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
  return parts;
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
    Plan plan;
    plan.mesh = mesh_;
    const int first = stages.front() % mesh_.size(MeshAxis::pipeline) * mesh_.stride(MeshAxis::pipeline);
    entry->second.placement = placement(mesh_, sync_group(plan, sync, first), cluster_->devices_per_node);
  }
  return sent(Collective::all_reduce, bytes, entry->second).seconds;
}

}  // namespace sibyl::closed
