#include <algorithm>

#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {

const char* halves(Collective collective) {
  if (collective == Collective::all_reduce) return "reduce-scatter, then all-gather, around the ring";
  return collective == Collective::reduce_scatter ? "reduce-scatter around the ring" : "all-gather around the ring";
}

void add_ring(Round& round, const std::vector<Message>& ring) {
  const std::size_t first = round.messages.size();
  for (std::size_t i = 0; i < ring.size(); ++i) {
    round.messages.push_back(ring[i]);
    round.after.push_back(static_cast<std::uint32_t>(first + (i + ring.size() - 1) % ring.size()));
  }
}

void join(Round& round, const Round& other) {
  const auto first = static_cast<std::uint32_t>(round.messages.size());
  round.messages.insert(round.messages.end(), other.messages.begin(), other.messages.end());
  for (const std::uint32_t before : other.after) round.after.push_back(first + before);
}

void flat_ring(Rounds& rounds, Collective collective, double share, int size, const At& at,
               const std::vector<std::vector<int>>& orders) {
  if (size < 2) return;
  const int times = (size - 1) * (collective == Collective::all_reduce ? 2 : 1);
  Round& round = rounds.add(halves(collective), times, Round::Kind::pipelined);
  const double bytes = share / size / static_cast<double>(orders.size());
  for (const auto& order : orders) {
    std::vector<Message> around;
    for (std::size_t i = 0; i < order.size(); ++i)
      around.push_back({at(order[i]), at(order[(i + 1) % order.size()]), bytes});
    add_ring(round, around);
  }
}

std::vector<int> in_order(int size) {
  std::vector<int> order(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) order[static_cast<std::size_t>(i)] = i;
  return order;
}

std::vector<int> from_gate(std::vector<int> ring, int ranks, int gate) {
  std::erase_if(ring, [ranks](int rank) { return rank >= ranks; });
  std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), gate), ring.end());
  return ring;
}

// Over several nodes: each ring enters a node at one device and goes on from it, so that rings keep to their NICs.
void ring(Rounds& rounds, Collective collective, const Layout& layout, int group) {
  const auto [ranks, nodes, groups, missing] = layout.placement();
  const At at = [&](int rank) { return layout.device(group, rank); };
  if (nodes == 1) return flat_ring(rounds, collective, 1.0, ranks, at, layout.orders());
  if (ranks == 1) return flat_ring(rounds, collective, 1.0, nodes, at, {in_order(nodes)});
  const int size = layout.placement().size(), orders = static_cast<int>(layout.orders().size());
  const int rings = std::max(layout.stripes(), orders);
  Round& round = rounds.add(halves(collective), (size - 1) * (collective == Collective::all_reduce ? 2 : 1),
                            Round::Kind::pipelined);
  const double bytes = 1.0 / size / rings;
  for (int i = 0; i < rings; ++i) {
    const std::vector<int>& all = layout.orders()[static_cast<std::size_t>(i % orders)];
    std::vector<Message> around;
    for (int node = 0; node < nodes; ++node) {
      const int next = (node + 1) % nodes, gate = layout.gate(node, i), next_gate = layout.gate(next, i);
      const std::vector<int> order = from_gate(all, layout.placement().on_node(node), gate);
      for (std::size_t k = 0; k + 1 < order.size(); ++k)
        around.push_back({layout.device(group, node, order[k]), layout.device(group, node, order[k + 1]), bytes});
      around.push_back({layout.device(group, node, gate), layout.device(group, next, next_gate), bytes});
    }
    add_ring(round, around);
  }
}

// Each edge of the ring, and the same way back, with half of the bytes.
void bidirectional_ring(Rounds& rounds, Collective collective, const Layout& layout, int group) {
  Rounds one_way;
  ring(one_way, collective, layout, group);
  for (const Round& it : one_way.rounds) {
    Round& round = rounds.add(it.what + ", half of it each way", it.times, it.kind);
    const auto first = static_cast<std::uint32_t>(round.messages.size());
    std::vector<std::uint32_t> next(it.messages.size());
    for (std::uint32_t i = 0; i < next.size(); ++i) next[it.after[i]] = i;
    for (std::size_t i = 0; i < it.messages.size(); ++i) {
      const Message& message = it.messages[i];
      round.messages.push_back({message.from, message.to, message.bytes / 2});
      round.after.push_back(first + 2 * it.after[i]);
      round.messages.push_back({message.to, message.from, message.bytes / 2});
      round.after.push_back(first + 2 * next[i] + 1);
    }
  }
}

}  // namespace sibyl::fabric
