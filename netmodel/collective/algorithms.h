// The algorithms of collectives: the time each takes over a Wire, and the elements each rank sends.
//
// Times are of the whole group, from the first rank's start to the last one's end, all starting together. `bytes`
// counts as CollectiveSample does. Where an algorithm does not offer a collective, runs() is false and the others
// must not be asked. Derivations: docs/models/network.md. Sources: Thakur, Rabenseifner, Gropp, "Optimization of
// Collective Communication Operations in MPICH" (2005); Sanders, Speck, Träff, "Two-tree algorithms for full
// bandwidth broadcast, reduction and scan" (2009); those of one algorithm stand in its file.
#pragma once

#include <cstdint>

#include "netmodel/collective/imbalance.h"
#include "netmodel/collective/wire.h"
#include "netmodel/network.h"

namespace sibyl::collective {

struct Job {
  Collective collective = Collective::all_reduce;
  Ranged bytes;
  GroupPlacement placement;
  Imbalance imbalance = {};  // of an all-to-all
};

// Does the algorithm offer this collective?
bool runs(Collective collective, Algorithm algorithm);

// Of one algorithm (not automatic).
Ranged seconds(const Job& job, Algorithm algorithm, const Wire& wire);

Ranged ring_seconds(const Job& job, const Wire& wire);
Ranged bidirectional_ring_seconds(const Job& job, const Wire& wire);
Ranged bruck_seconds(const Job& job, const Wire& wire);
Ranged halving_doubling_seconds(const Job& job, const Wire& wire);
Ranged binomial_seconds(const Job& job, const Wire& wire);
Ranged linear_seconds(const Job& job, const Wire& wire);
Ranged pair_by_pair_seconds(const Job& job, const Wire& wire);
Ranged recursive_doubling_seconds(const Job& job, const Wire& wire);
Ranged rabenseifner_seconds(const Job& job, const Wire& wire);
Ranged tree_seconds(const Job& job, const Wire& wire);
Ranged hierarchical_seconds(const Job& job, const Wire& wire);
Ranged multi_dimensional_seconds(const Job& job, const Wire& wire);
Ranged in_network_seconds(const Job& job, const Wire& wire);
Ranged gloo_seconds(const Job& job, const Wire& wire);
Ranged pairwise_seconds(const Job& job, const Wire& wire);  // all_to_all and send_receive, all at once

// What each of a node's ranks all-reduces with those of its place on other nodes when all are summed in the node first;
// and how long the ranks take for that where switches between nodes do not add: of no bytes, and of that share.
Job share_between_nodes(const Job& job);
struct BetweenNodes {
  Ranged empty, share;
};
// As above, with times between nodes from elsewhere (a fabric).
Ranged in_network_seconds(const Job& job, const Wire& wire, const BetweenNodes& by_ranks);

std::int64_t ring_elements(Collective collective, std::int64_t elements, int size, int rank);
std::int64_t bidirectional_ring_elements(Collective collective, std::int64_t elements, int size, int rank);
std::int64_t bruck_elements(Collective collective, std::int64_t elements, int size, int rank);
std::int64_t halving_doubling_elements(Collective collective, std::int64_t elements, int size, int rank);
std::int64_t binomial_elements(Collective collective, std::int64_t elements, int size, int rank);
std::int64_t linear_elements(Collective collective, std::int64_t elements, int size, int rank);
std::int64_t recursive_doubling_elements(std::int64_t elements, int size, int rank);
std::int64_t rabenseifner_elements(std::int64_t elements, int size, int rank);
std::int64_t tree_elements(Collective collective, std::int64_t elements, int size, int rank);
std::int64_t gloo_elements(Collective collective, std::int64_t elements, std::int64_t element_bytes, int size,
                           int rank);

// What runs when `algorithm` is asked for: itself where it offers the collective, ring or tree where not; and for
// automatic what sibyl::Communicator chooses (choice/sibyl.cpp).
Algorithm resolve(Collective collective, Algorithm algorithm, std::int64_t bytes, int group_size);

}  // namespace sibyl::collective
