#include "oracle/cost/price.h"

#include <algorithm>

namespace sibyl {
namespace {

Bound bound_of(const KernelKey& key, const Device& device) {
  const Work work = work_of(key, device.backend);
  const auto peak = device.peak.find(key.signature.dtype);
  if (peak == device.peak.end() || device.memory_bandwidth.value() <= 0) return Bound::compute;
  return work.flops / peak->second > (work.read + work.written) / device.memory_bandwidth ? Bound::compute
                                                                                          : Bound::memory;
}

// The step whose backward is the last to give a parameter its gradient: the first that uses it.
std::vector<std::size_t> completing_steps(const Stage& stage) {
  std::vector<std::size_t> completing(stage.tensors.size(), 0);
  for (std::size_t i = stage.steps.size(); i-- > 0;)
    if (const auto* compute = std::get_if<Compute>(&stage.steps[i]))
      for (std::size_t in = 0; in < compute->inputs.size(); ++in)
        if (compute->gradients >> in & 1U) completing[compute->inputs[in].index()] = i;
  return completing;
}

void price_messages(const Plan& plan, const Stage& stage, const Cluster& cluster, PricedStage& priced) {
  const std::vector<std::size_t> completing = completing_steps(stage);
  for (const GradientSync& sync : stage.gradients) {
    priced.overlapped = priced.overlapped && sync.overlapped;
    const GroupPlacement group = placement(plan.mesh, sync.axis, cluster.devices_per_node);
    for (const Bucket& bucket : sync.buckets) {
      PricedMessage message;
      message.bytes = Bytes{static_cast<double>(bucket.bytes())};
      message.estimate = cluster.network.collective(Collective::all_reduce, message.bytes, group);
      message.ready_after = stage.steps.size();
      for (const LocalTensorId parameter : bucket.parameters)
        message.ready_after = std::min(message.ready_after, completing[parameter.index()]);
      priced.bucket_bytes += message.bytes;
      priced.messages.push_back(message);
    }
  }
}

}  // namespace

PricedStage price(const Plan& plan, const Stage& stage, const Cluster& cluster) {
  const Device& device = cluster.kernels.device();
  PricedStage priced;
  priced.kernels = kernels_of(stage, device.backend);
  priced.prices.reserve(priced.kernels.keys.size());
  for (const KernelKey& key : priced.kernels.keys)
    priced.prices.push_back({cluster.kernels.estimate(key), bound_of(key, device)});
  priced.dispatch = device.dispatch;
  priced.overhead = cluster.step_overhead_per_operation;
  priced.composition = cluster.composition;
  price_messages(plan, stage, cluster, priced);
  return priced;
}

}  // namespace sibyl
