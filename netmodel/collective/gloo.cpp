// Gloo, which PyTorch's "gloo" process group calls on CPUs. Its all-reduce is a ring in which every rank sends to the one
// before it: a reduce-scatter and an all-gather of chunks, each in segments of at most 1 MiB, at least two of them, so
// that one is on its way while the one before is added. Its broadcast is a binomial tree: in round i ranks below 2^i
// send to those 2^i above them.
//
// Time: the ring's, and ceil(log2 p) messages one after the other. Source: gloo/allreduce.cc, gloo/broadcast.cc (2022).
#include <algorithm>

#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"

namespace sibyl::collective {
namespace {

constexpr std::int64_t most_of_a_segment = 1 << 20;  // bytes

std::int64_t divided(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Every chunk is as many whole segments, so the last chunks may be short or empty.
Range chunk(std::int64_t elements, std::int64_t element_bytes, int size, int index) {
  const std::int64_t least = 2 * size;
  const std::int64_t wanted = divided(elements, std::max<std::int64_t>(1, most_of_a_segment / element_bytes));
  const std::int64_t segments = divided(std::max(wanted, least), size) * size;
  const std::int64_t length = segments / size * divided(elements, segments);
  const auto end_of = [&](std::int64_t count) { return std::min(elements, count * length); };
  return {end_of(index), end_of(index + 1)};
}

}  // namespace

Ranged gloo_seconds(const Job& job, const Wire& wire) {
  return job.collective == Collective::broadcast ? binomial_seconds(job, wire) : ring_seconds(job, wire);
}

std::int64_t gloo_elements(Collective collective, std::int64_t elements, std::int64_t element_bytes, int size,
                           int rank) {
  if (collective == Collective::broadcast) return binomial_elements(collective, elements, size, rank);
  const auto of = [&](int index) { return chunk(elements, element_bytes, size, index % size).size(); };
  return 2 * elements - of(rank) - of(rank + size - 1);  // scattered: all but its own; gathered: all but the last one's
}

}  // namespace sibyl::collective
