#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/choice/rules.h"
#include "netmodel/collective/partition.h"

namespace sibyl::collective {
namespace {

Algorithm fallback(Collective collective) {
  const bool one_root = collective == Collective::broadcast || collective == Collective::reduce;
  return one_root ? Algorithm::tree : Algorithm::ring;
}

bool is_sum_or_gather(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::all_gather;
}

}  // namespace

bool runs(Collective collective, Algorithm algorithm) {
  using enum Algorithm;
  switch (algorithm) {
    case automatic: return false;
    case recursive_doubling:
    case rabenseifner:
    case in_network: return collective == Collective::all_reduce;
    case gloo: return collective == Collective::all_reduce || collective == Collective::broadcast;
    case tree:
    case binomial:
      return collective == Collective::all_reduce || collective == Collective::broadcast ||
             collective == Collective::reduce;
    case linear: return collective == Collective::broadcast || collective == Collective::reduce;
    case bidirectional_ring:
    case multi_dimensional: return is_sum_or_gather(collective);
    case halving_doubling: return collective == Collective::reduce_scatter || collective == Collective::all_gather;
    case bruck: return collective == Collective::all_gather || collective == Collective::all_to_all;
    case pairwise: return collective == Collective::all_to_all;
    case hierarchical: return is_sum_or_gather(collective) || collective == Collective::all_to_all;
    case ring: return collective != Collective::broadcast && collective != Collective::reduce;
  }
  return false;
}

Ranged seconds(const Job& job, Algorithm algorithm, const Wire& wire) {
  if (job.placement.size() <= 1) return 0.0;
  const bool in_pairs = job.collective == Collective::all_to_all || job.collective == Collective::send_receive;
  if (in_pairs && !runs(job.collective, algorithm)) return pairwise_seconds(job, wire);  // a sample may say anything
  switch (algorithm) {
    case Algorithm::bidirectional_ring: return bidirectional_ring_seconds(job, wire);
    case Algorithm::bruck: return bruck_seconds(job, wire);
    case Algorithm::halving_doubling: return halving_doubling_seconds(job, wire);
    case Algorithm::binomial: return binomial_seconds(job, wire);
    case Algorithm::linear: return linear_seconds(job, wire);
    case Algorithm::pairwise: return pair_by_pair_seconds(job, wire);
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
  if (algorithm == Algorithm::automatic) return choose(sibyl_rules(), collective, bytes, group_size);
  return runs(collective, algorithm) ? algorithm : fallback(collective);
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
    case Algorithm::halving_doubling:
      return c::halving_doubling_elements(collective, elements, group_size, rank) * element_bytes;
    case Algorithm::binomial: return c::binomial_elements(collective, elements, group_size, rank) * element_bytes;
    case Algorithm::linear: return c::linear_elements(collective, elements, group_size, rank) * element_bytes;
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
