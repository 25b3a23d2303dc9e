// A ring both ways at once: of each part one half goes round one way, the other half the other way. Where neighbours
// are joined by links of their own (a torus, devices of a node), a ring leaves the way back of each idle, and this
// takes half as long for the bytes (fabric/schedule). Behind a switch each rank has one port, which in a ring sends and
// receives all the time as well: there two halves in place of one part take as long, and nothing is gained.
#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"

namespace sibyl::collective {

Ranged bidirectional_ring_seconds(const Job& job, const Wire& wire) { return ring_seconds(job, wire); }

// As ring_elements, of the first halves; of the second ones with the ranks in reverse.
std::int64_t bidirectional_ring_elements(Collective collective, std::int64_t elements, int size, int rank) {
  const auto half = [&](int of, int which) {
    return part(part(elements, size, (of + size) % size).size(), 2, which).size();
  };
  const std::int64_t scatter = elements - half(rank, 0) - half(rank, 1);
  const std::int64_t gather = elements - half(rank + 1, 0) - half(rank - 1, 1);
  if (collective == Collective::reduce_scatter) return scatter;
  if (collective == Collective::all_gather) return gather;
  return scatter + gather;
}

}  // namespace sibyl::collective
