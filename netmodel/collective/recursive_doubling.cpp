// Recursive doubling: log2 p rounds; in round k partners at distance 2^k exchange the whole vector. Fewest rounds,
// most bytes. A group whose size is no power of two folds first (partition.h) and unfolds at the end: two more
// messages of m.
#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"
#include "netmodel/collective/rounds.h"

namespace sibyl::collective {

Ranged recursive_doubling_seconds(const Job& job, const Wire& wire) {
  const Fold fold = Fold::of(job.placement.size());
  Rounds rounds(wire);
  if (fold.extra > 0) rounds.between_partners(job.bytes, fold, job.placement, 0);
  for (int distance = 1; distance < fold.core; distance *= 2)
    rounds.between_partners(job.bytes, fold, job.placement, distance);
  if (fold.extra > 0) rounds.between_partners(job.bytes, fold, job.placement, 0);
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
