// The halves of an all-reduce in log2 p rounds. Reduce-scatter by recursive halving: first with the rank half of the group
// away and half of the vector, last with a neighbour and m/p. All-gather by recursive doubling: the same backwards, what a
// rank holds doubles. Both move m (p - 1)/p, as a ring. For powers of two only: of other counts an all-gather is Bruck's,
// as in Open MPI, and a reduce-scatter a ring.
#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"
#include "netmodel/collective/rounds.h"

namespace sibyl::collective {

Ranged halving_doubling_seconds(const Job& job, const Wire& wire) {
  const int size = job.placement.size();
  if (!halves_evenly(size)) return job.collective == Collective::all_gather ? bruck_seconds(job, wire) : ring_seconds(job, wire);
  const Fold nobody_folds = Fold::of(size);
  Rounds rounds(wire);
  for (int distance = 1; distance < size; distance *= 2)
    rounds.between_partners(job.bytes / size * distance, nobody_folds, job.placement, distance);
  return rounds.seconds();
}

// Scattered: at each distance the partner's block of so many parts; all but the own one in the end. Gathered: the own
// block.
std::int64_t halving_doubling_elements(Collective collective, std::int64_t elements, int size, int rank) {
  const bool gathers = collective == Collective::all_gather;
  if (!halves_evenly(size))
    return gathers ? bruck_elements(collective, elements, size, rank) : ring_elements(collective, elements, size, rank);
  if (!gathers) return elements - part(elements, size, rank).size();
  std::int64_t sent = 0;
  for (int distance = 1; distance < size; distance *= 2) {
    const int first = rank / distance * distance;
    sent += elements_of({first, first + distance}, elements, size).size();
  }
  return sent;
}

}  // namespace sibyl::collective
