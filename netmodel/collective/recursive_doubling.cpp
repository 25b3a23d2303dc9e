// Recursive doubling: log2 p rounds; in round k partners at distance 2^k exchange the whole vector. Fewest rounds,
// most bytes. A group whose size is no power of two folds first (partition.h) and unfolds at the end: two more
// messages of m.
#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"
#include "netmodel/collective/rounds.h"

namespace sibyl::collective {

Ranged recursive_doubling_seconds(const Job& job, const Wire& wire) {
  const auto [ranks, nodes, groups] = job.placement;
  const Fold fold = Fold::of(job.placement.size());
  // Partners sit in one node while blocks of that many ranks do not straddle nodes.
  Rounds rounds(wire);
  const auto round = [&, ranks = ranks, nodes = nodes, groups = groups](int block) {
    if (nodes == 1 || ranks % block == 0) return rounds.inside(job.bytes, ranks * groups);
    rounds.across(job.bytes, ranks * groups, (block + ranks - 1) / ranks, true);
  };
  if (fold.extra > 0) round(2);
  for (int block = 2; block <= fold.core; block *= 2) round(block);
  if (fold.extra > 0) round(2);
  return rounds.seconds();
}

std::int64_t recursive_doubling_elements(std::int64_t elements, int size, int rank) {
  const Fold fold = Fold::of(size);
  if (fold.waits(rank)) return elements;
  std::int64_t rounds = fold.takes(rank) ? 1 : 0;
  for (int block = 2; block <= fold.core; block *= 2) ++rounds;
  return rounds * elements;
}

}  // namespace sibyl::collective
