#include "netmodel/collective/partners.h"

#include <algorithm>

namespace sibyl::collective {
namespace {

constexpr int nobody = -1;

int partner(const Fold& fold, int rank, int distance) {
  if (distance == 0) return rank < 2 * fold.extra ? rank ^ 1 : nobody;
  return fold.waits(rank) ? nobody : fold.outer(fold.inner(rank) ^ distance);
}

}  // namespace

Partners partners(const Fold& fold, int ranks_per_node, int nodes, int distance) {
  if (nodes == 1) return {ranks_per_node, 0};
  if (ranks_per_node == 1) return {0, 1};
  if (fold.extra == 0 && halves_evenly(ranks_per_node))
    return distance < ranks_per_node ? Partners{ranks_per_node, 0} : Partners{0, ranks_per_node};
  Partners most;
  for (int node = 0; node < nodes; ++node) {
    const int begin = node * ranks_per_node, end = begin + ranks_per_node;
    Partners here;
    for (int rank = begin; rank < end; ++rank) {
      const int other = partner(fold, rank, distance);
      if (other != nobody) ++(other >= begin && other < end ? here.inside : here.outside);
    }
    most = {std::max(most.inside, here.inside), std::max(most.outside, here.outside)};
  }
  return most;
}

}  // namespace sibyl::collective
