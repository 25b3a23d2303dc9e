// Rabenseifner: reduce-scatter by recursive halving, all-gather by recursive doubling: 2 log2 p rounds and 2 m (p -
// 1)/p bytes. The first exchange is with the nearest rank and half the vector, the last with the farthest and m/p.
#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"
#include "netmodel/collective/rounds.h"

namespace sibyl::collective {

Ranged rabenseifner_seconds(const Job& job, const Wire& wire) {
  const Fold fold = Fold::of(job.placement.size());
  Rounds rounds(wire);
  const auto folds = [&] { rounds.between_partners(job.bytes, fold, job.placement, 0); };
  const auto round = [&](int distance) {
    rounds.between_partners(job.bytes / (2 * distance), fold, job.placement, distance);
  };
  if (fold.extra > 0) folds();
  for (int distance = 1; distance < fold.core; distance *= 2) round(distance);
  if (!rounds.empties()) return 2 * rounds.seconds();
  for (int distance = fold.core / 2; distance >= 1; distance /= 2) round(distance);
  if (fold.extra > 0) folds();
  return rounds.seconds();
}

std::int64_t rabenseifner_elements(std::int64_t elements, int size, int rank) {
  const Fold fold = Fold::of(size);
  if (fold.waits(rank)) return elements;
  std::int64_t sent = fold.takes(rank) ? elements : 0;
  Halving halving(fold.core);
  const int number = fold.inner(rank);
  for (int step = 0; (1 << step) < fold.core; ++step) {
    const Range given = halving.given(number, step);
    halving.parts = halving.kept(number, step);
    sent += elements_of(given, elements, fold.core).size();          // halving gives this away
    sent += elements_of(halving.parts, elements, fold.core).size();  // doubling gives this back
  }
  return sent;
}

}  // namespace sibyl::collective
