#include "netmodel/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "netmodel/fabric/costs.h"
#include "netmodel/group.h"

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

std::optional<Algorithm> Network::Model::answering_samples(Collective collective, double bytes,
                                                           const GroupPlacement& placement, Algorithm asked,
                                                           Algorithm runs) const {
  if (asked == Algorithm::automatic) asked = algorithm;
  if (asked == Algorithm::automatic && by_rules() && library.library == Library::nccl) return std::nullopt;
  Algorithm sampled = runs;
  if (asked == Algorithm::automatic && !by_rules() && table.has(collective, asked))
    sampled = group(collective, placement).known_beyond(bytes);
  if (table.nearest(collective, sampled, placement) == nullptr) return std::nullopt;
  return sampled;
}

// Whatever was measured elsewhere: a reason speaks of samples only where samples answered.
std::string Network::Model::why(Collective collective, double bytes, const GroupPlacement& placement, Algorithm asked,
                                Algorithm runs) const {
  const auto instead = [&](std::string_view wanted, Algorithm of) {
    return fmt::format("{} {}", wanted,
                       collective::runs(collective, of) ? "needs switches that add" : "does not offer this collective");
  };
  if (asked == Algorithm::automatic) asked = algorithm;
  if (asked != Algorithm::automatic) return asked == runs ? "it was asked for" : instead("what was asked for", asked);

  const bool by_table = library.library == Library::table;
  const auto whole = static_cast<std::int64_t>(std::min(bytes, 1e18));
  const Algorithm told = by_rules() ? collective::choose(rules(), collective, whole, placement.size()) : asked;
  if (told != Algorithm::automatic && told != runs) return instead("what the rules say", told);
  if (told != Algorithm::automatic)
    return fmt::format("{} so by the ranks and the size",
                       by_table ? "the cluster's table says" : fmt::format("{} chooses", to_string(library.library)));

  const bool as_nccl = gpus() || library.library == Library::nccl;
  const std::string_view gpu_library = library.library == Library::nccl ? "NCCL" : "a GPU library";
  const std::string_view best =
      switches_add() ? "the fastest of ring, tree and switches that add" : "the faster of ring and tree";
  const bool one_root = collective == Collective::broadcast || collective == Collective::reduce;
  std::string by_formula = "it is what the library runs for this collective";
  if (collective == Collective::all_reduce)
    by_formula = as_nccl ? fmt::format("it is {}, as {} chooses", best, gpu_library)
                         : "the communicator between CPUs chooses so by the size";
  else if (one_root && as_nccl)
    by_formula =
        fmt::format("it stands for the ring of chunks that {} runs, of which there is no formula", gpu_library);
  if (by_rules()) return by_table ? "the cluster's table does not say; " + by_formula : by_formula;

  const bool sampled = answering_samples(collective, bytes, placement, asked, runs).has_value();
  const std::string_view chosen = "the library chose when it was measured";
  if (table.has(collective, Algorithm::automatic)) {
    if (!sampled) return by_formula;
    if (collective != Collective::all_reduce) return fmt::format("{}; by formula this one is taken for it", chosen);
    return as_nccl ? fmt::format("{}; by formula this one is {}", chosen, best)
                   : fmt::format("{}; the communicator between CPUs chooses so by the size", chosen);
  }
  if (!any(collective)) return by_formula;
  return sampled ? "it is the fastest of those that were measured"
                 : "it is the fastest by formula of those that were measured elsewhere";
}

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
  const Model::Group& group = model.group(collective, placement);
  const auto by_formula = [&](Algorithm other) {
    return Seconds{uneven ? model.uneven(other, size, placement, {imbalance}) : group.formula(other, size)};
  };
  for (const Algorithm other :
       {Algorithm::ring, Algorithm::bidirectional_ring, Algorithm::bruck, Algorithm::halving_doubling,
        Algorithm::binomial, Algorithm::linear, Algorithm::pairwise, Algorithm::recursive_doubling,
        Algorithm::rabenseifner, Algorithm::tree, Algorithm::hierarchical, Algorithm::multi_dimensional,
        Algorithm::in_network})
    if (collective::runs(collective, other) && (other != Algorithm::in_network || model.switches_add()))
      result.candidates.emplace_back(other, by_formula(other));
  collective::ProtocolCost spoken;
  const Model::Formula& quickest = *group.quickest(runs, size).formula;
  if (quickest.speaks() != Protocol::automatic) {
    result.protocol = quickest.speaks();
    spoken =
        collective::cost_of(quickest.speaks(), collective, runs, model.topology.spec().device_link.kind, placement);
    for (const Protocol other : model.protocols(collective, runs)) {
      const Model::Formula formula(model, collective, runs, placement, other, collective::Ways::both);
      result.protocols.emplace_back(other, Seconds{model.launch + formula.seconds(size)});
    }
  }
  result.launch = Seconds{model.launch + spoken.launch};
  result.by_formula = by_formula(runs);

  result.why = result.candidates.size() <= 1 ? "it is the only one for this collective"
                                             : model.why(collective, size, placement, asked, runs);

  if (const auto sampled = model.answering_samples(collective, size, placement, asked, runs)) {
    const MeasuredPlacement* nearest = model.table.nearest(collective, *sampled, placement);
    result.samples = {nearest->placement, static_cast<int>(nearest->points.size()),
                      Bytes{nearest->points.front().bytes}, Bytes{nearest->points.back().bytes}};
    const auto around = model.table.around(collective, *sampled, placement);
    if (nearest->placement == placement)
      result.answered_by = "samples of this very placement";
    else if (around)
      result.answered_by =
          fmt::format("samples of {} and of {} ranks of a node, between them", around->first->placement.ranks_per_node,
                      around->second->placement.ranks_per_node);
    else
      result.answered_by = fmt::format("samples of {}, carried by the formula's ratio", describe(nearest->placement));
  } else if (!model.fabric_answers(placement.nodes == 1)) {
    result.answered_by = "the algorithm's formula over messages";
  } else {
    result.answered_by = model.heeds_messages(placement)
                             ? "the ways over the fabric's links, or the messages of its hosts where they take longer"
                             : "the ways over the fabric's links";
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
    if (const double waits = quickest.waiting(size); waits > 0) {
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
