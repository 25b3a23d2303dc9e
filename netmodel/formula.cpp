#include "netmodel/formula.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
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
  empty_ = both_ways(0.0).value();
}

Ranged Network::Model::Formula::on_the_wire(const Ranged& bytes, const collective::Wire& wire) const {
  if (over_ == Over::links) return links_.seconds(bytes, cost_);
  const collective::Job job{collective_, bytes, placement_};
  switch (over_) {
    case Over::links:
    case Over::messages: break;
    case Over::adding: {
      const Ranged share = collective::share_between_nodes(job).bytes;
      return collective::in_network_seconds(job, wire, {links_.seconds(0.0, cost_), links_.seconds(share, cost_)});
    }
    // Bytes stream through hosts, NICs and the links behind them; the slowest sets the pace. Messages showed what hosts
    // and NICs take: they were timed between nodes that share a switch, as neighbours mostly do.
    case Over::slower: return max(links_.seconds(bytes, cost_), collective::seconds(job, runs_, wire));
  }
  return collective::seconds(job, runs_, wire);
}

// The formulas let all bytes of a tree stream behind the first chunk. GPU libraries wait for each chunk at every hop:
// with n chunks over a way of latency a and transfer t that is n a/h + h t/n more for h hops, 2 sqrt(a t) with the best
// n. No more than half of the latency was seen (docs/models/network.md).
double Network::Model::Formula::waiting_of(double both_ways) const {
  return std::min(2 * std::sqrt(empty_ * std::max(0.0, both_ways - empty_)), empty_ / 2);
}

Network::Model::Formula::Parts Network::Model::Formula::parts(const Ranged& bytes) const {
  const Ranged moving = on_the_wire(bytes, wire_);
  if (!waits_) return {cost_.launch + moving, {}};
  return {cost_.launch + moving, both_ways_ ? both_ways(bytes) : moving};
}

Network::Model::Fastest::Fastest(std::vector<Formula> formulas) : formulas_(std::move(formulas)) {
  for (const Formula& formula : formulas_) all_.candidates.push_back({&formula, {}, {}});
}

// Of those known to be in question on both sides of it.
Network::Model::Fastest::Range Network::Model::Fastest::between(double from, double to,
                                                                std::span<const Candidate> known) {
  constexpr double rounding = 1 + 1e-9;
  std::vector<Formula::Parts> parts;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : known) {
    const auto& [moving, both_ways] = parts.emplace_back(candidate.formula->parts({from, to}));
    least = std::min(least, candidate.formula->seconds(moving.end, both_ways.end));
  }
  const auto line = [&](const Ranged& part) { return Line{part.begin, (part.end - part.begin) / (to - from)}; };
  bool straight = true;
  std::vector<Candidate> in_question;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto& [moving, both_ways] = parts[i];
    const Formula& formula = *known[i].formula;
    if (formula.seconds(moving.begin, both_ways.begin) > least * rounding) continue;
    in_question.push_back({&formula, line(moving), line(both_ways)});
    straight = straight && moving.straight && both_ways.straight;
  }
  return Range{from, to, straight, std::move(in_question)};
}

const Network::Model::Fastest::Range& Network::Model::Fastest::range(double bytes) const {
  // The eighth of a number of one byte and more is told by its exponent and the first three bits behind the point.
  constexpr auto one = std::bit_cast<std::uint64_t>(1.0);
  constexpr int bits_below = 49;
  constexpr double narrow = 1e-3;  // of its bytes: what is worked out anew when it bends
  const std::size_t eighth = bytes < 1.0 ? 0 : 1 + ((std::bit_cast<std::uint64_t>(bytes) - one) >> bits_below);
  if (eighth >= eighths) return all_;
  const auto begin = [&](std::size_t of) {
    return of == 0 ? 0.0 : std::bit_cast<double>(one + (static_cast<std::uint64_t>(of - 1) << bits_below));
  };
  const Range* found = &eighths_[eighth / 8].get([] { return Eight{}; })[eighth % 8].get(
      [&] { return between(begin(eighth), begin(eighth + 1), all_.candidates); });
  while (!found->straight && found->to - found->from > narrow * std::max(1.0, found->to)) {
    const double middle = (found->from + found->to) / 2;
    const bool upper = bytes >= middle;
    const double from = upper ? middle : found->from, to = upper ? found->to : middle;
    found = &found->halves[upper ? 1 : 0].get([&] { return between(from, to, found->candidates); });
  }
  return *found;
}

Network::Model::Fastest::Pick Network::Model::Fastest::at(double bytes) const {
  const Range& here = range(bytes);
  Pick best;
  for (const Candidate& candidate : here.candidates) {
    const double seconds = here.straight ? candidate.seconds(bytes - here.from) : candidate.formula->seconds(bytes);
    if (best.formula == nullptr || seconds < best.seconds) best = {candidate.formula, seconds};
  }
  return best;
}

Algorithm Network::Model::Fastest::algorithm(double bytes) const {
  const std::vector<Candidate>& candidates = range(bytes).candidates;
  const Algorithm first = candidates.front().formula->runs(), last = candidates.back().formula->runs();
  // Formulas of one algorithm follow one another.
  return first == last ? first : at(bytes).formula->runs();
}

}  // namespace sibyl
