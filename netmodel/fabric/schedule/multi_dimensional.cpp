#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {

// A ring along each dimension after the other, with what is left of the bytes; and back again over the same links.
void multi_dimensional(Rounds& rounds, Collective collective, const Layout& layout, int group) {
  const int ranks = layout.placement().ranks_per_node, nodes = layout.placement().nodes;
  const auto along = [&](const std::string& what, int extent, double share, auto&& each_line) {
    if (extent < 2) return;
    Round& round = rounds.add(std::string(halves(collective)) + what,
                              (extent - 1) * (collective == Collective::all_reduce ? 2 : 1), Round::Kind::pipelined);
    each_line([&](int from, int to, double part) { round.messages.push_back({from, to, share / extent * part}); });
  };
  along(" of a node", ranks, 1.0, [&](auto&& send) {
    const auto& orders = layout.orders();
    for (int node = 0; node < nodes; ++node)
      for (const std::vector<int>& order : orders)
        for (std::size_t i = 0; i < order.size(); ++i)
          send(layout.device(group, node, order[i]), layout.device(group, node, order[(i + 1) % order.size()]),
               1.0 / static_cast<double>(orders.size()));
  });
  double share = 1.0 / ranks;
  int stride = 1, number = 0;
  for (const int extent : layout.extents()) {
    along(" of dimension " + std::to_string(++number), extent, share, [&](auto&& send) {
      for (int node = 0; node < nodes; ++node) {
        const int at = node / stride % extent, next = at + 1 < extent ? node + stride : node - at * stride;
        for (int local = 0; local < ranks; ++local)
          send(layout.device(group, node, local), layout.device(group, next, local), 1.0);
      }
    });
    share /= extent;
    stride *= extent;
  }
}

}  // namespace sibyl::fabric
