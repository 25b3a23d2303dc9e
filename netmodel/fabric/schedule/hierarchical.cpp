#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {

void hierarchical(Rounds& rounds, Collective collective, const Layout& layout, int group, Algorithm between) {
  const auto [ranks, nodes, groups, missing] = layout.placement();
  for (int node = 0; node < nodes; ++node) {
    // All nodes at once: one round.
    Rounds here;
    flat_ring(
        here, collective, 1.0, ranks, [&, node = node](int rank) { return layout.device(group, node, rank); },
        layout.orders());
    if (here.rounds.empty()) continue;
    if (node == 0)
      rounds.add(std::string(halves(collective)) + " of a node", here.rounds[0].times, here.rounds[0].kind);
    join(rounds.last(), here.rounds[0]);
  }
  std::vector<Round> joined;
  for (int local = 0; local < ranks; ++local) {
    const At at = [&, local = local](int node) { return layout.device(group, node, local); };
    Rounds here;
    if (between == Algorithm::rabenseifner && collective == Collective::all_reduce)
      rabenseifner(here, 1.0 / ranks, nodes, at);
    else
      flat_ring(here, collective, 1.0 / ranks, nodes, at, {in_order(nodes)});
    if (joined.empty()) {
      joined = std::move(here.rounds);
      continue;
    }
    for (std::size_t i = 0; i < joined.size(); ++i) join(joined[i], here.rounds[i]);
  }
  for (const Round& round : joined) join(rounds.add("between nodes: " + round.what, round.times, round.kind), round);
}

}  // namespace sibyl::fabric
