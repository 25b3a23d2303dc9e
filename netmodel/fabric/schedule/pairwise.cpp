#include <algorithm>

#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {
namespace {

// Beyond so many messages of an all-to-all some shifts (to the rank so much further on) stand for all.
constexpr int most_messages = 1 << 19;

// `at_once`: ranks that send, of all groups.
int shifts_among(int size, int at_once) {
  return std::clamp(most_messages / std::max(1, at_once), std::min(8, size - 1), size - 1);
}

int shift_of(int i, int shifts, int size) { return 1 + static_cast<int>((i + 0.5) * (size - 1) / shifts); }

// What the first rank gets, and each other one, against the mean.
struct Gets {
  double first = 1.0, others = 1.0;
  [[nodiscard]] double of(int rank) const { return rank == 0 ? first : others; }
};

Gets gets(const collective::Imbalance& imbalance, int size) { return {imbalance.busiest, imbalance.others(size)}; }

// A part of everything to each other rank.
void to_each_other(Round& round, int size, const At& at, int at_once, const Gets& shares) {
  const int shifts = shifts_among(size, at_once);
  const double bytes = static_cast<double>(size - 1) / size / shifts;
  for (int i = 0; i < shifts; ++i) {
    const int shift = shift_of(i, shifts, size);
    for (int rank = 0; rank < size; ++rank) {
      const int to = (rank + shift) % size;
      round.messages.push_back({at(rank), at(to), bytes * shares.of(to)});
    }
  }
}

}  // namespace

void all_to_all(Rounds& rounds, int size, const At& at, int groups, const collective::Imbalance& imbalance) {
  to_each_other(rounds.add("a part to each other rank, all at once"), size, at, size * groups, gets(imbalance, size));
}

// A round for each shift; where some stand for all, as many times as these.
void pair_by_pair(Rounds& rounds, int size, const At& at, int groups, const collective::Imbalance& imbalance) {
  const Gets shares = gets(imbalance, size);
  const int shifts = shifts_among(size, size * groups);
  const auto before = [&](int i) { return static_cast<int>(static_cast<std::int64_t>(i) * (size - 1) / shifts); };
  for (int i = 0; i < shifts; ++i) {
    const int shift = shift_of(i, shifts, size);
    Round& round = rounds.add("a part to the rank " + std::to_string(shift) + " further on", before(i + 1) - before(i));
    for (int rank = 0; rank < size; ++rank) {
      const int to = (rank + shift) % size;
      round.messages.push_back({at(rank), at(to), shares.of(to) / size});
    }
  }
}

// In the node each rank collects what goes to its place on any node; then those of one place exchange it. The first
// rank's place is the busiest of its node.
void hierarchical_all_to_all(Rounds& rounds, const Layout& layout, int group, const collective::Imbalance& imbalance) {
  const int ranks = layout.placement().ranks_per_node, nodes = layout.placement().nodes;
  const int at_once = ranks * nodes * layout.groups();
  const Gets all = gets(imbalance, ranks * nodes);
  const Gets places{imbalance.among(nodes, ranks * nodes), all.others};
  if (ranks > 1) {
    Round& round = rounds.add("in a node, to each rank what goes to its place on any node");
    for (int node = 0; node < nodes; ++node)
      to_each_other(
          round, ranks, [&](int local) { return layout.device(group, node, local); }, at_once, places);
  }
  if (nodes > 1) {
    Round& round = rounds.add("between nodes, what each has for that rank");
    for (int local = 0; local < ranks; ++local)
      to_each_other(
          round, nodes, [&](int node) { return layout.device(group, node, local); }, at_once,
          local == 0 ? all : Gets{all.others, all.others});
  }
}

// Ranks in a line: all to the only neighbour, or half to each of two.
void with_neighbours(Rounds& rounds, int size, const At& at) {
  Round& round = rounds.add("with the neighbours, both ways at once");
  for (int rank = 0; rank + 1 < size; ++rank) {
    round.messages.push_back({at(rank), at(rank + 1), size == 2 ? 1.0 : 0.5});
    round.messages.push_back({at(rank + 1), at(rank), size == 2 ? 1.0 : 0.5});
  }
}

}  // namespace sibyl::fabric
