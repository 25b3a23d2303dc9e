#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"

namespace sibyl::collective {
namespace {

constexpr std::int64_t small_vector = 16 * 1024;
constexpr std::int64_t small_part = 64 * 1024;
constexpr int few_ranks = 4;

Algorithm fallback(Collective collective) {
  const bool one_root = collective == Collective::broadcast || collective == Collective::reduce;
  return one_root ? Algorithm::tree : Algorithm::ring;
}

}  // namespace

bool runs(Collective collective, Algorithm algorithm) {
  switch (collective) {
    case Collective::all_reduce: return algorithm != Algorithm::automatic && algorithm != Algorithm::bruck;
    case Collective::all_gather:
      if (algorithm == Algorithm::bruck) return true;
      [[fallthrough]];
    case Collective::reduce_scatter:
      return algorithm == Algorithm::ring || algorithm == Algorithm::bidirectional_ring ||
             algorithm == Algorithm::hierarchical || algorithm == Algorithm::multi_dimensional;
    case Collective::broadcast: return algorithm == Algorithm::tree || algorithm == Algorithm::gloo;
    case Collective::reduce: return algorithm == Algorithm::tree;
    case Collective::all_to_all:
      return algorithm == Algorithm::ring || algorithm == Algorithm::bruck || algorithm == Algorithm::hierarchical;
    case Collective::send_receive: return algorithm == Algorithm::ring;
  }
  return false;
}

double seconds(const Job& job, Algorithm algorithm, const Wire& wire) {
  if (job.placement.size() <= 1) return 0.0;
  const bool in_pairs = job.collective == Collective::all_to_all || job.collective == Collective::send_receive;
  if (in_pairs && !runs(job.collective, algorithm)) return pairwise_seconds(job, wire);  // a sample may say anything
  switch (algorithm) {
    case Algorithm::bidirectional_ring: return bidirectional_ring_seconds(job, wire);
    case Algorithm::bruck: return bruck_seconds(job, wire);
    case Algorithm::recursive_doubling: return recursive_doubling_seconds(job, wire);
    case Algorithm::rabenseifner: return rabenseifner_seconds(job, wire);
    case Algorithm::tree: return tree_seconds(job, wire);
    case Algorithm::hierarchical: return hierarchical_seconds(job, wire);
    case Algorithm::multi_dimensional: return multi_dimensional_seconds(job, wire);
    case Algorithm::in_network: return in_network_seconds(job, wire);
    case Algorithm::gloo: return gloo_seconds(job, wire);
    case Algorithm::ring:
    case Algorithm::automatic: break;
  }
  return in_pairs ? pairwise_seconds(job, wire) : ring_seconds(job, wire);
}

Algorithm resolve(Collective collective, Algorithm algorithm, std::int64_t bytes, int group_size) {
  if (algorithm != Algorithm::automatic && runs(collective, algorithm)) return algorithm;
  if (algorithm != Algorithm::automatic || collective != Collective::all_reduce) return fallback(collective);
  if (bytes <= small_vector) return Algorithm::recursive_doubling;
  const bool short_parts = bytes <= group_size * small_part;
  return group_size > few_ranks && short_parts ? Algorithm::rabenseifner : Algorithm::ring;
}

std::array<std::int64_t, 2> choice_changes(int group_size) {
  return {small_vector, group_size > few_ranks ? group_size * small_part : small_vector};
}

}  // namespace sibyl::collective

namespace sibyl {

std::int64_t bytes_sent(Collective collective, Algorithm algorithm, std::int64_t elements, std::int64_t element_bytes,
                        int group_size, int rank) {
  namespace c = sibyl::collective;
  if (group_size <= 1) return 0;
  if (collective == Collective::send_receive) return elements * element_bytes;
  const Algorithm runs = c::resolve(collective, algorithm, elements * element_bytes, group_size);
  if (collective == Collective::all_to_all && runs != Algorithm::bruck)
    return (elements - c::part(elements, group_size, rank).size()) * element_bytes;
  switch (runs) {
    case Algorithm::bruck: return c::bruck_elements(collective, elements, group_size, rank) * element_bytes;
    case Algorithm::bidirectional_ring:
      return c::bidirectional_ring_elements(collective, elements, group_size, rank) * element_bytes;
    case Algorithm::recursive_doubling:
      return c::recursive_doubling_elements(elements, group_size, rank) * element_bytes;
    case Algorithm::rabenseifner: return c::rabenseifner_elements(elements, group_size, rank) * element_bytes;
    case Algorithm::tree: return c::tree_elements(collective, elements, group_size, rank) * element_bytes;
    case Algorithm::gloo:
      return c::gloo_elements(collective, elements, element_bytes, group_size, rank) * element_bytes;
    // Those that follow the machine, too: a byte count knows no placement, and the communicator runs a ring when asked
    // for them.
    default: return c::ring_elements(collective, elements, group_size, rank) * element_bytes;
  }
}

}  // namespace sibyl
