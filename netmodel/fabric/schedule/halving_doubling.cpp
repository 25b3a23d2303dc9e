#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {

void halving_doubling(Rounds& rounds, Collective collective, int size, const At& at) {
  const bool gathers = collective == Collective::all_gather;
  for (int reach = 1; reach < size; reach *= 2) {
    const int distance = gathers ? reach : size / 2 / reach;
    Round& round = rounds.add(std::string(gathers ? "doubling" : "halving") + " with the rank at distance " +
                              std::to_string(distance));
    for (int rank = 0; rank < size; ++rank)
      round.messages.push_back({at(rank), at(rank ^ distance), static_cast<double>(distance) / size});
  }
}

}  // namespace sibyl::fabric
