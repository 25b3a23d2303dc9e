#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {

void binomial_broadcast(Rounds& rounds, int size, const At& at) {
  for (int distance = 1; distance < size; distance *= 2) {
    Round& round = rounds.add("hand on to the rank " + std::to_string(distance) + " above");
    for (int rank = 0; rank < distance && rank + distance < size; ++rank)
      round.messages.push_back({at(rank), at(rank + distance), 1.0});
  }
}

}  // namespace sibyl::fabric
