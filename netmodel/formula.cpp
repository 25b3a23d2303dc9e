#include "netmodel/formula.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace sibyl {

Network::Model::Formula::Formula(const Model& model, Collective collective, Algorithm runs,
                                 const GroupPlacement& placement, Protocol speaks, collective::Ways ways)
    : collective_(collective),
      runs_(runs),
      placement_(placement),
      speaks_(speaks),
      cost_(speaks == Protocol::automatic
                ? collective::ProtocolCost{}
                : collective::cost_of(speaks, collective, runs, model.topology.spec().device_link.kind, placement)),
      wire_(model.topology, model.point_to_point, cost_, ways) {
  if (placement.size() <= 1) return;
  if (model.fabric_answers(placement.nodes == 1)) {
    // A fabric's own switches only pass on, but those of its nodes may add.
    const bool adds = runs == Algorithm::in_network && model.switches_add();
    if (adds && placement.nodes > 1) {
      const GroupPlacement ranks = collective::share_between_nodes({collective, 0.0, placement}).placement;
      links_ = model.costs->compiled(collective, Algorithm::tree, ranks);
      over_ = Over::adding;
    } else if (!adds) {
      links_ = model.costs->compiled(collective, runs, placement);
      over_ = model.heeds_messages(placement) ? Over::slower : Over::links;
    }
  }
  const bool tree =
      runs == Algorithm::tree || (runs == Algorithm::in_network && !model.topology.spec().switches_reduce);
  waits_ = collective == Collective::all_reduce && tree && placement.nodes > 1 && model.gpus();
  const auto no_bytes = [this](const collective::Wire& wire) { static_cast<void>(on_the_wire(0.0, wire)); };
  wire_.find_ways(no_bytes);
  if (!waits_) return;
  if (ways == collective::Ways::one)
    both_ways_.emplace(model.topology, model.point_to_point, cost_).find_ways(no_bytes);
  empty_ = both_ways(0.0);
}

double Network::Model::Formula::on_the_wire(double bytes, const collective::Wire& wire) const {
  if (over_ == Over::links) return links_.seconds(bytes, cost_);
  const collective::Job job{collective_, bytes, placement_};
  switch (over_) {
    case Over::links:
    case Over::messages: break;
    case Over::adding: {
      const double share = collective::share_between_nodes(job).bytes;
      return collective::in_network_seconds(job, wire, {links_.seconds(0.0, cost_), links_.seconds(share, cost_)});
    }
    // Bytes stream through hosts, NICs and the links behind them; the slowest sets the pace. Messages showed what hosts
    // and NICs take: they were timed between nodes that share a switch, as neighbours mostly do.
    case Over::slower: return std::max(links_.seconds(bytes, cost_), collective::seconds(job, runs_, wire));
  }
  return collective::seconds(job, runs_, wire);
}

// The formulas let all bytes of a tree stream behind the first chunk. GPU libraries wait for each chunk at every hop:
// with n chunks over a way of latency a and transfer t that is n a/h + h t/n more for h hops, 2 sqrt(a t) with the best
// n. No more than half of the latency was seen (docs/models/network.md).
double Network::Model::Formula::waiting_of(double both_ways) const {
  return std::min(2 * std::sqrt(empty_ * std::max(0.0, both_ways - empty_)), empty_ / 2);
}

double Network::Model::Formula::seconds(double bytes) const {
  const double moving = on_the_wire(bytes, wire_);
  if (!waits_) return cost_.launch + moving;
  return cost_.launch + moving + waiting_of(both_ways_ ? both_ways(bytes) : moving);
}

Network::Model::Fastest::Fastest(std::vector<Formula> formulas) : formulas_(std::move(formulas)) {
  if (formulas_.size() > 1) known_ = std::make_unique<std::atomic<Set>[]>(eighths);
}

Network::Model::Fastest::Set Network::Model::Fastest::in_question_between(double from, double to) const {
  constexpr double rounding = 1 + 1e-9;
  double least = std::numeric_limits<double>::infinity();
  for (const Formula& formula : formulas_) least = std::min(least, formula.seconds(to));
  Set set = 0;
  for (std::size_t i = 0; i < formulas_.size(); ++i)
    if (formulas_[i].seconds(from) <= least * rounding) set = static_cast<Set>(set | 1U << i);
  return set;
}

Network::Model::Fastest::Set Network::Model::Fastest::in_question(double bytes) const {
  if (formulas_.size() == 1) return 1;
  // The eighth of a number of one byte and more is told by its exponent and the first three bits behind the point.
  constexpr auto one = std::bit_cast<std::uint64_t>(1.0);
  constexpr int bits_below = 49;
  const std::size_t eighth = bytes < 1.0 ? 0 : 1 + ((std::bit_cast<std::uint64_t>(bytes) - one) >> bits_below);
  if (eighth >= eighths) return static_cast<Set>((1U << formulas_.size()) - 1);
  Set set = known_[eighth].load(std::memory_order_relaxed);
  if (set != 0) return set;
  const auto begin = [&](std::size_t of) {
    return of == 0 ? 0.0 : std::bit_cast<double>(one + (static_cast<std::uint64_t>(of - 1) << bits_below));
  };
  set = in_question_between(begin(eighth), begin(eighth + 1));
  known_[eighth].store(set, std::memory_order_relaxed);
  return set;
}

Network::Model::Fastest::Pick Network::Model::Fastest::at(double bytes) const {
  Pick best;
  for (Set left = in_question(bytes); left != 0; left = static_cast<Set>(left & (left - 1U))) {
    const Formula& formula = formulas_[static_cast<std::size_t>(std::countr_zero(left))];
    const double seconds = formula.seconds(bytes);
    if (best.formula == nullptr || seconds < best.seconds) best = {&formula, seconds};
  }
  return best;
}

Algorithm Network::Model::Fastest::algorithm(double bytes) const {
  const Set set = in_question(bytes);
  const auto at_place = [&](int place) { return formulas_[static_cast<std::size_t>(place)].runs(); };
  const Algorithm first = at_place(std::countr_zero(set)), last = at_place(std::bit_width(set) - 1);
  // Formulas of one algorithm follow one another.
  return first == last ? first : at(bytes).formula->runs();
}

}  // namespace sibyl
