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
    each_gradient(stage, stage.steps[i], [&](LocalTensorId id) { completing[id.index()] = i; });
  return completing;
}

void price_messages(const Plan& plan, const Stage& stage, const Cluster& cluster, PricedStage& priced) {
  const std::vector<std::size_t> completing = completing_steps(stage);
  for (const GradientSync& sync : stage.gradients) {
    priced.overlapped = priced.overlapped && sync.overlapped;
    const GroupPlacement group = placement(plan.mesh, sync.axes, cluster.devices_per_node);
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

// A halo goes to two neighbours; its slabs share the way out.
std::optional<CollectiveEstimate> price_transfer(const Transfer& transfer, const LocalTensor& from, const Shape& to,
                                                 const Network& network, const GroupPlacement& group) {
  const std::optional<Collective> collective = collective_of(transfer.motion);
  if (!collective) return std::nullopt;
  const double elements = static_cast<double>(buffer_elements(transfer, from.shape, to));
  return network.collective(*collective, Bytes{elements * size_in_bytes(from.dtype)}, group);
}

void price_exchanges(const Plan& plan, const Stage& stage, const Cluster& cluster, PricedStage& priced) {
  priced.exchanges.resize(stage.steps.size());
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
    if (!exchange) continue;
    const GroupPlacement group = placement(plan.mesh, exchange->axis, cluster.devices_per_node);
    const LocalTensor& in = stage[exchange->input];
    const LocalTensor& out = stage[exchange->output];
    priced.exchanges[i] = {price_transfer(exchange->forward, in, out.shape, cluster.network, group),
                           price_transfer(exchange->backward, out, in.shape, cluster.network, group)};
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
  price_exchanges(plan, stage, cluster, priced);
  return priced;
}

}  // namespace sibyl
