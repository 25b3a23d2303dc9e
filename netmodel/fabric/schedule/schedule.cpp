#include <algorithm>

#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {

double Schedule::amount(Round::Of of, double bytes) const {
  const double through_tree = tree_share * bytes, first = std::min(through_tree, chunk);
  return of == Round::Of::whole ? bytes : of == Round::Of::chunk ? first : through_tree - first;
}

namespace {

// An all-to-all, and halos, which have one way.
void add_pairs(Rounds& rounds, Collective collective, Algorithm algorithm, const Layout& layout, int group,
               const At& at, const collective::Imbalance& imbalance) {
  const int size = layout.placement().size();
  if (collective == Collective::send_receive) return with_neighbours(rounds, size, at);
  switch (algorithm) {
    case Algorithm::bruck: return bruck(rounds, collective, size, at, imbalance.busiest);
    case Algorithm::hierarchical: return hierarchical_all_to_all(rounds, layout, group, imbalance);
    case Algorithm::pairwise: return pair_by_pair(rounds, size, at, layout.groups(), imbalance);
    default: return all_to_all(rounds, size, at, layout.groups(), imbalance);
  }
}

void add(Rounds& rounds, Collective collective, Algorithm algorithm, const Layout& layout, int group, bool chains,
         Algorithm between, const collective::Imbalance& imbalance) {
  const At at = [&](int rank) { return layout.device(group, rank); };
  const int size = layout.placement().size();
  if (collective == Collective::all_to_all || collective == Collective::send_receive)
    return add_pairs(rounds, collective, algorithm, layout, group, at, imbalance);
  if (algorithm == Algorithm::halving_doubling && !collective::halves_evenly(size))
    algorithm = collective == Collective::all_gather ? Algorithm::bruck : Algorithm::ring;
  switch (algorithm) {
    case Algorithm::bidirectional_ring: return bidirectional_ring(rounds, collective, layout, group);
    case Algorithm::bruck: return bruck(rounds, collective, size, at);
    case Algorithm::halving_doubling: return halving_doubling(rounds, collective, size, at);
    case Algorithm::recursive_doubling: return recursive_doubling(rounds, size, at);
    case Algorithm::rabenseifner: return rabenseifner(rounds, 1.0, size, at);
    case Algorithm::tree: return tree(rounds, collective, layout, group, chains);
    case Algorithm::binomial: return binomial(rounds, collective, size, at);
    case Algorithm::linear: return linear(rounds, collective, size, at);
    case Algorithm::hierarchical: return hierarchical(rounds, collective, layout, group, between);
    case Algorithm::multi_dimensional: return multi_dimensional(rounds, collective, layout, group);
    case Algorithm::gloo:
      if (collective == Collective::broadcast) return binomial(rounds, collective, size, at);
      return ring(rounds, collective, layout, group);
    default: return ring(rounds, collective, layout, group);
  }
}

}  // namespace

Schedule schedule(Collective collective, Algorithm algorithm, const Layout& layout, bool chains, Algorithm between,
                  const collective::Imbalance& imbalance) {
  Rounds rounds;
  for (int group = 0; group < layout.groups(); ++group, rounds.next_group())
    add(rounds, collective, algorithm, layout, group, chains, between, imbalance);
  Schedule result{std::move(rounds.rounds), 1.0,
                  static_cast<double>(chains ? collective::gpu_tree_chunk_bytes : collective::tree_chunk_bytes)};
  if (collective == Collective::all_reduce) result.tree_share = 0.5;
  return result;
}

}  // namespace sibyl::fabric
