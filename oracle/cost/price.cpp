#include "oracle/cost/price.h"

#include <algorithm>

#include "oracle/cost/cached.h"
#include "oracle/cost/framework.h"
#include "oracle/cost/offload.h"
#include "oracle/cost/ring_overlap.h"
#include "oracle/cost/shared_memory.h"
#include "oracle/cost/tensor_overlap.h"
#include "oracle/plan/compression.h"
#include "oracle/plan/message_bytes.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/zero.h"

namespace sibyl {
namespace {

// The step whose backward is the last to give a parameter its gradient: the first that uses it.
std::vector<std::size_t> completing_steps(const Stage& stage) {
  std::vector<std::size_t> completing(stage.tensors.size(), 0);
  for (std::size_t i = stage.steps.size(); i-- > 0;)
    each_gradient(stage, stage.steps[i], [&](LocalTensorId id) { completing[id.index()] = i; });
  return completing;
}

int first_rank(const Plan& plan, int stage) {
  return stage % plan.mesh.size(MeshAxis::pipeline) * plan.mesh.stride(MeshAxis::pipeline);
}

// One message after the other.
void add(const Estimate& further, Estimate& sum) {
  const Seconds total = sum.time + further.time;
  if (total.value() > 0)
    sum.relative_error = (sum.time * sum.relative_error + further.time * further.relative_error) / total;
  sum.time = total;
  sum.provenance = std::max(sum.provenance, further.provenance);
}

// One message after the other; of those on several wires the busier ones count.
void add(const CollectiveEstimate& further, const WireUse& wire, PricedMessage& message) {
  const Seconds before = message.estimate.time.time, time = further.time.time, all = before + time;
  const bool same = wire.between_nodes == message.wire.between_nodes;
  const Seconds was = before * message.wire.busy, is = time * wire.busy;
  if (is > was) message.wire.between_nodes = wire.between_nodes, message.wire.flows = wire.flows;
  if (all.value() > 0) message.wire.busy = (same ? was + is : std::max(was, is)) / all;
  add(further.time, message.estimate.time);
}

}  // namespace

SyncPlacement placement(const Mesh& mesh, const GradientSync& sync, int first_rank, int devices_per_node) {
  if (!sync.stages.empty()) return {placement(mesh, sync_group(mesh, sync, first_rank), devices_per_node), {}};
  if (sync.copies == 1) return {placement(mesh, sync.axes, devices_per_node), {}};
  return {placement(mesh, shard_group(mesh, sync, 0), devices_per_node),
          placement(mesh, copies_group(mesh, sync, 0), devices_per_node)};
}

PricedMessage price_bucket(const GradientSync& sync, const Bucket& bucket, const SyncPlacement& where,
                           Algorithm library, const Cluster& cluster) {
  PricedMessage message;
  message.exchange = exchange_name(sync);
  message.estimate.time.provenance = Provenance::measured;  // until something less sure is added
  for (const BucketMessage& one : bucket_messages(sync, bucket)) {
    message.bytes = Bytes{static_cast<double>(one.elements) * size_in_bytes(one.dtype)};
    const CollectiveEstimate estimate = cluster.network.collective(one.collective, message.bytes, where.parts, library);
    add(estimate, cluster.network.wire_use(one.collective, estimate, where.parts), message);
    message.estimate.algorithm = estimate.algorithm;
  }
  if (sync.copies == 1) return message;
  // Then a part's sum over those who hold the same part.
  const CollectiveEstimate further =
      cluster.network.collective(Collective::all_reduce, message.bytes / sync.parts, where.copies);
  add(further, cluster.network.wire_use(Collective::all_reduce, further, where.copies), message);
  return message;
}

namespace {

void price_messages(const Plan& plan, const Stage& stage, const Cluster& cluster, PricedStage& priced) {
  const std::vector<std::size_t> completing = completing_steps(stage);
  const Algorithm library = exchange_algorithm(plan.strategy, cluster);
  for (const GradientSync& sync : stage.gradients) {
    const int first = sync.stages.empty() ? 0 : first_rank(plan, sync.stages.front());
    const SyncPlacement where = placement(plan.mesh, sync, first, cluster.devices_per_node);
    for (const Bucket& bucket : sync.buckets) {
      PricedMessage message = price_bucket(sync, bucket, where, library, cluster);
      message.overlapped = sync.overlapped;
      message.stages = sync.stages;
      message.ready_after = stage.steps.size();
      for (const LocalTensorId parameter : bucket.parameters)
        message.ready_after = std::min(message.ready_after, completing[parameter.index()]);
      priced.bucket_bytes += message.bytes;
      priced.messages.push_back(message);
    }
  }
}

PricedMessage price_gather(const Plan& plan, const GradientSync& sync, const Bucket& bucket, const Cluster& cluster) {
  const Bytes bytes{static_cast<double>(bucket.parameter_bytes())};
  const GroupPlacement group = placement(plan.mesh, sync, 0, cluster.devices_per_node).parts;
  PricedMessage gather;
  gather.estimate = cluster.network.collective(Collective::all_gather, bytes, group);
  gather.wire = cluster.network.wire_use(Collective::all_gather, gather.estimate, group);
  gather.bytes = bytes;
  return gather;
}

void price_gathers(const Plan& plan, const Stage& stage, const Cluster& cluster, PricedStage& priced) {
  for (const ParameterUnit& unit : stage.units) {
    const GradientSync& sync = stage.gradients[unit.sync];
    priced.unit_gathers.push_back(price_gather(plan, sync, sync.buckets[unit.bucket], cluster));
  }
  for (std::size_t s = 0; s < stage.gradients.size(); ++s)
    for (std::size_t b = 0; stage.gradients[s].sharded() && b < stage.gradients[s].buckets.size(); ++b)
      if (!has_unit(stage, s, b))
        priced.gathers.push_back(price_gather(plan, stage.gradients[s], stage.gradients[s].buckets[b], cluster));
}

void price_broadcasts(const Plan& plan, const Stage& stage, const Cluster& cluster, PricedStage& priced) {
  const GroupPlacement group = placement(plan.mesh, MeshAxis::data, cluster.devices_per_node);
  for (const std::int64_t bytes : stage.buffer_broadcasts) {
    PricedMessage message;
    message.bytes = Bytes{static_cast<double>(bytes)};
    message.estimate = cluster.network.collective(Collective::broadcast, message.bytes, group,
                                                  exchange_algorithm(plan.strategy, cluster));
    priced.gathers.push_back(message);
  }
}

void price_norms(const Plan& plan, const Stage& stage, const Cluster& cluster, PricedStage& priced) {
  const auto sum = [&](const std::vector<MeshAxis>& axes, std::int64_t elements) {
    const Bytes bytes{static_cast<double>(elements) * size_in_bytes(DType::f32)};
    return cluster.network.collective(Collective::all_reduce, bytes,
                                      placement(plan.mesh, axes, cluster.devices_per_node));
  };
  if (stage.clip && stage.clip->sends && !stage.clip->axes.empty()) priced.clip_norm = sum(stage.clip->axes, 1);
  if (!stage.norm_axes.empty()) priced.tensor_norms = sum(stage.norm_axes, norm_elements(stage));
}

std::optional<CollectiveEstimate> price_transfer(const Transfer& transfer, const LocalTensor& from, const Shape& to,
                                                 double filled, const Network& network, const GroupPlacement& group,
                                                 WireUse& wire) {
  const std::optional<Collective> collective = collective_of(transfer.motion);
  if (!collective) return std::nullopt;
  const Bytes bytes = message_bytes(transfer, from, to, group.size());
  const CollectiveEstimate estimate = filled < 1.0 ? network.uneven_all_to_all(bytes * filled, group, 1 / filled)
                                                   : network.collective(*collective, bytes, group);
  wire = network.wire_use(*collective, estimate, group);
  return estimate;
}

}  // namespace

PricedExchange price_exchange(const Mesh& mesh, const Stage& stage, const Exchange& exchange, const Cluster& cluster) {
  const GroupPlacement group = placement(mesh, exchange.axis, cluster.devices_per_node);
  const LocalTensor& in = stage[exchange.input];
  const LocalTensor& out = stage[exchange.output];
  PricedExchange priced;
  const auto price = [&](const Transfer& transfer, const LocalTensor& from, const LocalTensor& to, WireUse& wire) {
    return price_transfer(transfer, from, to.shape, exchange.filled, cluster.network, group, wire);
  };
  priced.forward = price(exchange.forward, in, out, priced.forward_wire);
  priced.backward = price(exchange.backward, out, in, priced.backward_wire);
  return priced;
}

const PricedExchange& ExchangePrices::of(const Stage& stage, const Exchange& exchange) {
  const LocalTensor &in = stage[exchange.input], &out = stage[exchange.output];
  const auto found = std::ranges::find_if(known_, [&](const Known& known) {
    return known.exchange.axis == exchange.axis && known.exchange.forward == exchange.forward &&
           known.exchange.backward == exchange.backward && known.exchange.filled == exchange.filled &&
           known.in == in.shape && known.out == out.shape && known.in_type == in.dtype && known.out_type == out.dtype;
  });
  if (found != known_.end()) return found->priced;
  const PricedExchange priced = price_exchange(mesh_, stage, exchange, *cluster_);
  return known_.emplace_back(Known{exchange, in.shape, out.shape, in.dtype, out.dtype, priced}).priced;
}

namespace {

// While the last ranks of its group exchange, the first ones compute, if there is something to compute.
void go_on(std::optional<CollectiveEstimate>& transfer, WireUse& wire, Seconds computing) {
  if (!transfer || transfer->in_turn == 1.0) return;
  const Seconds alone = transfer->time.time;
  transfer->time.time = Seconds{time_in_turn(alone.value(), transfer->in_turn, computing.value())};
  wire.busy = std::min(1.0, wire.busy * (alone / transfer->time.time));
}

}  // namespace

PricedExchange in_a_pass(PricedExchange exchange, const ExchangeWait& wait, double factor) {
  exchange.wait = wait;
  go_on(exchange.forward, exchange.forward_wire, wait.computing_forward * factor);
  go_on(exchange.backward, exchange.backward_wire, wait.computing_backward * factor);
  return exchange;
}

namespace {

void price_exchanges(const Plan& plan, const Stage& stage, const Cluster& cluster, ExchangePrices& exchanges,
                     PricedStage& priced) {
  const std::vector<ExchangeWait> waits = exchange_waits(plan.mesh, stage, priced.kernels, priced.prices, cluster);
  priced.exchanges.resize(stage.steps.size());
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
    if (!exchange) continue;
    priced.exchanges[i] = in_a_pass(exchanges.of(stage, *exchange), waits[i], priced.composition.factor);
  }
  if (plan.strategy.overlap_tensor) hide_behind_products(plan, stage, priced);
  if (goes_round(plan.strategy)) hide_behind_attention(stage, slowdown_of(plan.strategy, cluster), priced);
}

}  // namespace

Pairs pairs_of(const Mesh& mesh, int from, int to, int devices_per_node) {
  const int stride = mesh.stride(MeshAxis::pipeline), distance = (to - from) * stride;
  int node = -1, staying = 0, leaving = 0, most_staying = 1, most_leaving = 0;
  // The ranks of the coordinate: `stride` in a row each time that coordinates begin anew.
  for (int first = from * stride; first < mesh.size(); first += stride * mesh.size(MeshAxis::pipeline))
    for (int rank = first; rank < first + stride; ++rank) {
      if (rank / devices_per_node != node) node = rank / devices_per_node, staying = leaving = 0;
      const bool stays = (rank + distance) / devices_per_node == node;
      most_staying = std::max(most_staying, staying += stays ? 1 : 0);
      most_leaving = std::max(most_leaving, leaving += stays ? 0 : 1);
    }
  return most_leaving == 0 ? Pairs{true, most_staying} : Pairs{false, most_leaving};
}

namespace {

// So many ranks of a node that send out of it, and as many others that do.
bool share_a_wire(int ranks, const Cluster& cluster) {
  if (2 * ranks > cluster.devices_per_node) return true;
  constexpr Bytes message{1 << 20};  // long enough to be on the wire for most of its time
  const auto time = [&](Bytes bytes, int pairs) {
    return cluster.network.point_to_point(bytes, false, pairs).time.value();
  };
  const double alone = time(message, ranks), with_others = time(message, 2 * ranks);
  return with_others - alone > (alone - time(Bytes{1}, ranks)) / 2;
}

}  // namespace

Passage passage_of(const Mesh& mesh, int from, int to, const Pairs& pairs, const Cluster& cluster) {
  const int stride = mesh.stride(MeshAxis::pipeline), each = cluster.devices_per_node;
  const auto node_of = [&](int coordinate) { return coordinate * stride / each; };
  if (pairs.same_node || node_of(from) == node_of(to)) return {};
  if (!share_a_wire(pairs.sharing, cluster)) return {from, to};
  const auto first_of_its_node = [&](int coordinate) { return (node_of(coordinate) * each + stride - 1) / stride; };
  return {first_of_its_node(from), first_of_its_node(to)};
}

WireUse wire_use(const Pairs& pairs, double seconds, std::size_t messages, const Network& network) {
  if (!(seconds > 0)) return {};
  const double empty = network.point_to_point(Bytes{1}, pairs.same_node, pairs.sharing).time.value();
  return {!pairs.same_node, std::clamp(1.0 - empty * static_cast<double>(messages) / seconds, 0.0, 1.0),
          pairs.same_node ? 1.0 : network.flows(pairs.sharing)};
}

namespace {

// Across nodes if any pair is; those that leave a node share its NICs.
Estimate price_send(const Plan& plan, const Stage& stage, const std::vector<Link>& links, bool gradients, int from,
                    const Cluster& cluster, WireUse& wire, Passage& passage) {
  const int coordinates = plan.mesh.size(MeshAxis::pipeline), to = links.front().peer % coordinates;
  const Pairs pairs = pairs_of(plan.mesh, from % coordinates, to, cluster.devices_per_node);
  passage = passage_of(plan.mesh, from % coordinates, to, pairs, cluster);
  Estimate sum{{}, 0.0, Provenance::measured};
  double error = 0;
  std::size_t messages = 0;
  for (const Link& link : links) {
    if (gradients && !link.gradient) continue;
    ++messages;
    const LocalTensor& tensor = stage[link.tensor];
    const Bytes bytes{static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype)};
    const Estimate one = cluster.network.point_to_point(bytes, pairs.same_node, pairs.sharing);
    sum.time += one.time;
    error += one.time.value() * one.relative_error;
    sum.provenance = std::max(sum.provenance, one.provenance);
  }
  sum.relative_error = sum.time.value() > 0 ? error / sum.time.value() : 0.0;
  wire = wire_use(pairs, sum.time.value(), messages, cluster.network);
  return sum;
}

void price_links(const Plan& plan, const Stage& stage, const Cluster& cluster, PricedStage& priced) {
  if (!stage.sends.empty())
    priced.send_forward = price_send(plan, stage, stage.sends, false, stage.sends.front().peer - 1, cluster,
                                     priced.forward_wire, priced.forward_passage);
  if (!stage.receives.empty())
    priced.send_backward = price_send(plan, stage, stage.receives, true, stage.receives.front().peer + 1, cluster,
                                      priced.backward_wire, priced.backward_passage);
}

void price_network(const Plan& plan, const Stage& stage, const Cluster& cluster, ExchangePrices& exchanges,
                   PricedStage& priced) {
  price_messages(plan, stage, cluster, priced);
  price_exchanges(plan, stage, cluster, exchanges, priced);
  price_links(plan, stage, cluster, priced);
  price_gathers(plan, stage, cluster, priced);
  price_broadcasts(plan, stage, cluster, priced);
  price_norms(plan, stage, cluster, priced);
}

}  // namespace

namespace {

// All but messages.
PricedStage price_compute(const Plan& plan, const Stage& stage, KernelPrices& kernels) {
  const Cluster& cluster = kernels.cluster();
  const Device& device = cluster.kernels.device();
  PricedStage priced;
  priced.kernels = kernels_of(stage, device.backend);
  priced.prices.reserve(priced.kernels.keys.size());
  for (const KernelKey& key : priced.kernels.keys) priced.prices.push_back(kernels.of(key, plan.strategy));
  priced.dispatch = device.dispatch;
  priced.bare_launch = bare_launch(device);
  priced.composition = cluster.composition;
  priced.beside_copies = copies_slowdown(plan.strategy, cluster.kernels.device());
  priced.overhead = cluster.step_overhead_per_operation * cluster.composition.factor;
  priced.copies = price_copies(plan, stage, cluster);
  priced.brought = price_brought(plan, stage, cluster);
  priced.kept = price_kept(plan, stage, cluster);
  return priced;
}

}  // namespace

PricedStage price(const Plan& plan, const Stage& stage, KernelPrices& kernels) {
  PricedStage priced = price_compute(plan, stage, kernels);
  ExchangePrices exchanges(plan.mesh, kernels.cluster());
  price_network(plan, stage, kernels.cluster(), exchanges, priced);
  return priced;
}

std::vector<PricedStage> price(const Plan& plan, KernelPrices& kernels) {
  std::vector<PricedStage> priced;
  for (const Stage& stage : plan.stages) priced.push_back(price_compute(plan, stage, kernels));
  find_cached(plan, kernels.cluster(), priced);
  share_memory(plan, kernels.cluster(), priced);
  ExchangePrices exchanges(plan.mesh, kernels.cluster());
  for (std::size_t s = 0; s < priced.size(); ++s)
    price_network(plan, plan.stages[s], kernels.cluster(), exchanges, priced[s]);
  return priced;
}

PricedStage price(const Plan& plan, const Stage& stage, const Cluster& cluster) {
  KernelPrices kernels(cluster);
  return price(plan, stage, kernels);
}

std::vector<PricedStage> price(const Plan& plan, const Cluster& cluster) {
  KernelPrices kernels(cluster);
  return price(plan, kernels);
}

PricedStage with_network_of(const Cluster& cluster, const Plan& plan, const Stage& stage, PricedStage priced) {
  priced.messages.clear();
  priced.exchanges.clear();
  priced.unit_gathers.clear();
  priced.gathers.clear();
  priced.bucket_bytes = {};
  ExchangePrices exchanges(plan.mesh, cluster);
  price_network(plan, stage, cluster, exchanges, priced);
  return priced;
}

}  // namespace sibyl
