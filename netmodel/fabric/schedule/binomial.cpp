#include <bit>

#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {
namespace {

void binomial_round(Rounds& rounds, int size, int distance, bool up, const At& at) {
  Round& round =
      rounds.add((up ? "sum up from the rank " : "hand on to the rank ") + std::to_string(distance) + " above");
  for (int rank = 0; rank < distance && rank + distance < size; ++rank)
    round.messages.push_back(up ? Message{at(rank + distance), at(rank), 1.0}
                                : Message{at(rank), at(rank + distance), 1.0});
}

}  // namespace

void binomial(Rounds& rounds, Collective collective, int size, const At& at) {
  const int farthest = size > 1 ? static_cast<int>(std::bit_floor(static_cast<unsigned>(size - 1))) : 0;
  if (collective != Collective::broadcast)
    for (int distance = farthest; distance >= 1; distance /= 2) binomial_round(rounds, size, distance, true, at);
  if (collective != Collective::reduce)
    for (int distance = 1; distance < size; distance *= 2) binomial_round(rounds, size, distance, false, at);
}

}  // namespace sibyl::fabric
