#include "netmodel/explain.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "netmodel/fabric/costs.h"
#include "netmodel/network_model.h"

namespace sibyl {
namespace {

NetworkExplanation::Round explained(const fabric::Fabric& links, const std::vector<double>& capacities,
                                    const fabric::RoundCost& cost, double amount,
                                    const collective::ProtocolCost& spoken) {
  NetworkExplanation::Round round;
  round.what = cost.what;
  round.times = cost.times;
  round.messages = static_cast<int>(cost.messages);
  round.message = Bytes{cost.over_busiest.bytes * amount};
  round.latency = Seconds{cost.latency + cost.inside * spoken.inside + cost.across * spoken.across};
  round.transfer = Seconds{cost.per_byte * amount / spoken.share};
  if (cost.busiest_load <= 0) return round;
  round.busiest_link = links.channel_name(cost.busiest);
  round.over_busiest_link = Bytes{cost.busiest_load * amount};
  round.gives = BytesPerSecond{capacities[cost.busiest] * spoken.share};
  std::vector<fabric::Step> steps;
  links.route(cost.over_busiest.from, cost.over_busiest.to, 0, steps);
  // Where a message is split, steps of several ways follow one another: those that go on from the last are one way.
  fabric::VertexId at = steps.empty() ? 0 : links.graph().edges()[steps.front().edge].from;
  if (!steps.empty()) round.route.push_back(links.graph().name(at));
  for (const fabric::Step& step : steps) {
    const fabric::Edge& edge = links.graph().edges()[step.edge];
    if (edge.from != at) continue;
    at = edge.to;
    round.route.push_back(links.graph().name(at));
  }
  return round;
}

std::string describe(const GroupPlacement& placement) {
  return fmt::format("{} nodes of {} ranks, {} groups at once", placement.nodes, placement.ranks_per_node,
                     placement.groups_per_node);
}

}  // namespace

NetworkExplanation Network::explain(Collective collective, Bytes bytes, GroupPlacement placement, Algorithm asked,
                                    double imbalance) const {
  const Model& model = *model_;
  NetworkExplanation result;
  if (!model.shared) placement.groups_per_node = 1;
  const bool uneven = collective == Collective::all_to_all && imbalance != 1.0;
  result.estimate = uneven ? uneven_all_to_all(bytes, placement, imbalance, asked)
                           : this->collective(collective, bytes, placement, asked);
  if (placement.size() <= 1) {
    result.why = "one rank has nothing to send";
    result.answered_by = "nobody";
    return result;
  }
  const double size = std::max(0.0, bytes.value());
  const Algorithm runs = result.estimate.algorithm;
  const auto by_formula = [&](Algorithm other) {
    return Seconds{uneven ? model.uneven(other, size, placement, {imbalance})
                          : model.formula(collective, other, size, placement)};
  };
  const Algorithm wanted = asked == Algorithm::automatic ? model.algorithm : asked;
  for (const Algorithm other :
       {Algorithm::ring, Algorithm::bidirectional_ring, Algorithm::bruck, Algorithm::halving_doubling,
        Algorithm::binomial, Algorithm::linear, Algorithm::pairwise, Algorithm::recursive_doubling,
        Algorithm::rabenseifner, Algorithm::tree, Algorithm::hierarchical, Algorithm::multi_dimensional,
        Algorithm::in_network})
    if (collective::runs(collective, other) && (other != Algorithm::in_network || model.switches_add()))
      result.candidates.emplace_back(other, by_formula(other));
  collective::ProtocolCost spoken;
  if (const Protocol quickest = model.quickest(collective, runs, size, placement).first;
      quickest != Protocol::automatic) {
    result.protocol = quickest;
    spoken = collective::cost_of(quickest, collective, runs, model.topology.spec().device_link.kind, placement);
    for (const Protocol other : model.protocols(collective, runs))
      result.protocols.emplace_back(other,
                                    Seconds{model.launch + model.spoken(collective, runs, size, placement, other)});
  }
  result.launch = Seconds{model.launch + spoken.launch};
  result.by_formula = by_formula(runs);

  const bool only_one = result.candidates.size() <= 1;
  const bool by_rules = wanted == Algorithm::automatic && model.by_rules();
  const bool library_measured = !by_rules && model.table.has(collective, Algorithm::automatic);
  const std::string_view best =
      model.switches_add() ? "the fastest of ring, tree and switches that add" : "the faster of ring and tree";
  if (only_one)
    result.why = "it is the only one for this collective";
  else if (wanted != Algorithm::automatic && wanted != runs && collective::runs(collective, wanted))
    result.why = "what was asked for needs switches that add";
  else if (wanted != Algorithm::automatic)
    result.why = wanted == runs ? "it was asked for" : "what was asked for does not offer this collective";
  else if (by_rules)
    result.why = model.library.library == Library::nccl
                     ? fmt::format("it is {}, as NCCL chooses", best)
                     : fmt::format("{} by the ranks and the size",
                                   model.library.library == Library::table
                                       ? "the cluster's table says so"
                                       : fmt::format("{} chooses so", to_string(model.library.library)));
  else if (collective != Collective::all_reduce && !model.any(collective))
    result.why = "it is what the library runs for this collective";
  else if (library_measured && collective != Collective::all_reduce)
    result.why = "it is what the library ran when it was measured";
  else if (library_measured)
    result.why = fmt::format("the library chose when it was measured; by formula this one is {}", best);
  else if (model.any(collective))
    result.why = "it is the fastest of those that were measured";
  else
    result.why = model.gpus() ? fmt::format("it is {}, as a GPU library chooses", best)
                              : "the communicator between CPUs chooses so by the size";

  const Algorithm of_samples = wanted == Algorithm::automatic && library_measured ? Algorithm::automatic : runs;
  if (const MeasuredPlacement* nearest = model.table.nearest(collective, of_samples, placement)) {
    result.samples = {nearest->placement, static_cast<int>(nearest->points.size()),
                      Bytes{nearest->points.front().bytes}, Bytes{nearest->points.back().bytes}};
    const auto around = model.table.around(collective, of_samples, placement);
    if (nearest->placement == placement)
      result.answered_by = "samples of this very placement";
    else if (around)
      result.answered_by =
          fmt::format("samples of {} and of {} ranks of a node, between them", around->first->placement.ranks_per_node,
                      around->second->placement.ranks_per_node);
    else
      result.answered_by = fmt::format("samples of {}, carried by the formula's ratio", describe(nearest->placement));
  } else {
    result.answered_by = model.fabric_answers(placement.nodes == 1) ? "the ways over the fabric's links"
                                                                    : "the algorithm's formula over messages";
  }

  if (uneven && result.samples) result.answered_by += ", and to uneven parts by the formulas' ratio";

  const auto add_distance = [&](std::string what, int level) {
    const Path& path = model.topology.path(level);
    result.distances.push_back({std::move(what), path.links, path.latency, path.bandwidth,
                                Seconds{model.point_to_point.seconds(1 << 20, {level, 1})}});
  };
  if (model.fabric_answers(placement.nodes == 1) && runs != Algorithm::in_network) {
    const fabric::Costs& costs = *model.costs;
    const fabric::Schedule schedule = costs.schedule_of(collective, runs, placement, Algorithm::ring, {imbalance});
    for (const fabric::RoundCost& cost : fabric::round_costs(*costs.fabric(), costs.capacities(), schedule))
      result.rounds.push_back(
          explained(*costs.fabric(), costs.capacities(), cost, schedule.amount(cost.of, size), spoken));
    if (const double waits = model.waits(collective, runs, size, placement, spoken); waits > 0) {
      NetworkExplanation::Round& round = result.rounds.emplace_back();
      round.what = "chunks wait at each hop";
      round.latency = Seconds{waits};
    }
    return result;
  }
  if (placement.ranks_per_node > 1) add_distance("inside a node", 0);
  if (placement.nodes > 1) {
    const int level = model.topology.span(placement.nodes);
    add_distance(fmt::format("between nodes, {} of switches", level == 1 ? "1 level" : fmt::format("{} levels", level)),
                 level);
  }
  return result;
}

std::string used_by_others(const Network& network) {
  const TopologySpec& links = network.topology().spec();
  const fabric::Fabric* fabric = network.links();
  std::string text;
  for (const auto& [share, what] :
       {std::pair{links.nic_background, "each NIC"},
        std::pair{fabric != nullptr ? fabric->spec().background : 0.0, "each link between nodes"},
        std::pair{links.device_link.background, "the links inside each node"}})
    if (share > 0) text += fmt::format("{}{:.3g} % of {}", text.empty() ? "" : " and ", 100 * share, what);
  return text;
}

}  // namespace sibyl
