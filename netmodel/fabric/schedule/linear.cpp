#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {

void linear(Rounds& rounds, Collective collective, int size, const At& at) {
  const bool from_root = collective == Collective::broadcast;
  Round& round = rounds.add(from_root ? "from the root to each rank at once" : "from each rank to the root at once");
  for (int rank = 1; rank < size; ++rank)
    round.messages.push_back(from_root ? Message{at(0), at(rank), 1.0} : Message{at(rank), at(0), 1.0});
}

}  // namespace sibyl::fabric
