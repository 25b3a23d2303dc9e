#include "netmodel/collective/partners.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace sibyl::collective {
namespace {

constexpr int nobody = -1;

int partner(const Fold& fold, int rank, int distance) {
  if (distance == 0) return rank < 2 * fold.extra ? rank ^ 1 : nobody;
  return fold.waits(rank) ? nobody : fold.outer(fold.inner(rank) ^ distance);
}

}  // namespace

Partners partners(const Fold& fold, const GroupPlacement& placement, int distance) {
  const int each = placement.ranks_per_node;
  if (placement.nodes == 1) return {each, 0};
  if (each == 1) return {0, 1};
  if (placement.missing == 0 && fold.extra == 0 && halves_evenly(each))
    return distance < each ? Partners{each, 0} : Partners{0, each};
  Partners most;
  int end = 0;
  for (int node = 0; node < placement.nodes; ++node) {
    const int begin = end;
    end = begin + placement.on_node(node);
    int inside = 0;
    std::array<int, 2> outside{};  // of those that fold even ranks send, of those that unfold odd ones: never both
    for (int rank = begin; rank < end; ++rank) {
      const int other = partner(fold, rank, distance);
      if (other == nobody) continue;
      if (other >= begin && other < end)
        ++inside;
      else
        ++outside[distance == 0 ? static_cast<std::size_t>(rank % 2) : 0];
    }
    most = {std::max(most.inside, inside), std::max({most.outside, outside[0], outside[1]})};
  }
  return most;
}

}  // namespace sibyl::collective
