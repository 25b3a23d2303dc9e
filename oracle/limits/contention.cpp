// What a step loses because its messages do not have the links to themselves.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "netmodel/explain.h"
#include "oracle/cost/framework.h"
#include "oracle/limits/finders.h"
#include "oracle/simulate/step.h"

namespace sibyl::limits {
namespace {

// All that a stage sends, each message once.
Seconds sent(const PricedStage& priced) {
  Seconds time;
  for (const PricedExchange& exchange : priced.exchanges)
    for (const auto& transfer : {exchange.forward, exchange.backward})
      if (transfer) time += transfer->time.time;
  for (const auto* messages : {&priced.messages, &priced.unit_gathers, &priced.gathers})
    for (const PricedMessage& message : *messages) time += message.estimate.time.time;
  for (const auto& norm : {priced.clip_norm, priced.tensor_norms})
    if (norm) time += norm->time.time;
  for (const auto& link : {priced.send_forward, priced.send_backward})
    if (link) time += link->time;
  return time;
}

// The step with messages of these prices, where only they are others.
Seconds step_time(const Found& f, const std::vector<PricedStage>& priced) {
  const Slowdown slowdown = slowdown_of(f.plan.strategy, f.cluster);
  return f.plan.stages.size() == 1
             ? simulate_step(f.plan.stages.front(), priced.front(), slowdown, {}, f.cancelled).total
             : simulate_pipeline(f.plan, priced, slowdown, {}, f.cancelled).step.total;
}

// The axis of which the most groups talk at once on one node, and how many they are.
std::pair<MeshAxis, int> most_groups(const Found& f) {
  std::pair<MeshAxis, int> most{MeshAxis::data, 1};
  for (const Mesh::Extent& extent : f.plan.mesh.extents) {
    if (extent.size == 1) continue;
    const GroupPlacement groups = placement(f.plan.mesh, extent.axis, f.cluster.devices_per_node);
    if (groups.nodes > 1 && groups.groups_per_node > most.second) most = {extent.axis, groups.groups_per_node};
  }
  return most;
}

std::string who_shares(const Found& f) {
  const auto [axis, groups] = most_groups(f);
  std::string text = groups > 1 ? fmt::format("{} groups of {} on a node's NICs", groups, to_string(axis)) : "";
  if (const std::string others = used_by_others(f.cluster.network); !others.empty())
    text += fmt::format("{}others use {}", text.empty() ? "" : "; ", others);
  return text;
}

}  // namespace

void contention(const Found& f, Limits& limits) {
  if (f.plan.mesh.size() == 1) return;
  const Result<Network> network = f.cluster.network.uncontended();
  if (!network) return;
  Cluster alone = f.cluster;
  alone.network = *network;
  std::vector<PricedStage> priced;
  Seconds now, then;
  for (std::size_t s = 0; s < f.plan.stages.size(); ++s) {
    priced.push_back(with_network_of(alone, f.plan, f.plan.stages[s], f.priced[s]));
    now += sent(f.priced[s]);
    then += sent(priced.back());
  }
  if (then >= now) return;
  add_cost(f, f.simulated - step_time(f, priced), "network congestion", who_shares(f),
           those_that_suit({{"groups within a node (--order, other degrees)", most_groups(f).second > 1},
                            {"more NICs"},
                            {"links that others use less", !used_by_others(f.cluster.network).empty()}}),
           limits);
}

}  // namespace sibyl::limits
