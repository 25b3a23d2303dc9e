#include <algorithm>

#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {

double Schedule::amount(Round::Of of, double bytes) const {
  const double through_tree = tree_share * bytes, first = std::min(through_tree, chunk);
  return of == Round::Of::whole ? bytes : of == Round::Of::chunk ? first : through_tree - first;
}

Schedule schedule(Collective collective, Algorithm algorithm, const Layout& layout, bool chains, Algorithm between) {
  Rounds rounds;
  const int size = layout.placement().size();
  for (int group = 0; group < layout.groups(); ++group, rounds.next_group()) {
    const At at = [&, group = group](int rank) { return layout.device(group, rank); };
    if (algorithm == Algorithm::bruck)
      bruck(rounds, collective, size, at);
    else if (collective == Collective::all_to_all && algorithm == Algorithm::hierarchical)
      hierarchical_all_to_all(rounds, layout, group);
    else if (collective == Collective::all_to_all)
      all_to_all(rounds, size, at, layout.groups());
    else if (collective == Collective::send_receive)
      with_neighbours(rounds, size, at);
    else if (algorithm == Algorithm::recursive_doubling)
      recursive_doubling(rounds, size, at);
    else if (algorithm == Algorithm::rabenseifner)
      rabenseifner(rounds, 1.0, size, at);
    else if (algorithm == Algorithm::tree)
      tree(rounds, collective, layout, group, chains);
    else if (algorithm == Algorithm::hierarchical)
      hierarchical(rounds, collective, layout, group, between);
    else if (algorithm == Algorithm::bidirectional_ring)
      bidirectional_ring(rounds, collective, layout, group);
    else if (algorithm == Algorithm::multi_dimensional)
      multi_dimensional(rounds, collective, layout, group);
    else if (algorithm == Algorithm::gloo && collective == Collective::broadcast)
      binomial_broadcast(rounds, size, at);
    else
      ring(rounds, collective, layout, group);
  }
  Schedule result{std::move(rounds.rounds), 1.0,
                  static_cast<double>(chains ? collective::gpu_tree_chunk_bytes : collective::tree_chunk_bytes)};
  if (collective == Collective::all_reduce) result.tree_share = 0.5;
  return result;
}

}  // namespace sibyl::fabric
