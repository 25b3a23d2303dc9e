#include "netmodel/collective/partition.h"
#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {

void bruck(Rounds& rounds, Collective collective, int size, const At& at, double padded) {
  const bool gathers = collective == Collective::all_gather;
  for (int distance = 1; distance < size; distance *= 2) {
    const int parts = collective::bruck_parts(collective, size, distance);
    Round& round = rounds.add("hand " + std::to_string(parts) + (parts == 1 ? " part" : " parts") +
                              " on to the rank at distance " + std::to_string(distance));
    for (int rank = 0; rank < size; ++rank)
      round.messages.push_back(
          {at(rank), at((gathers ? rank + size - distance : rank + distance) % size), padded * parts / size});
  }
}

}  // namespace sibyl::fabric
