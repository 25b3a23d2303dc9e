// Exchanges on a fabric flow by flow (fabric/contention/simulation.h) beside their closed form, and several at once, which
// the closed form does not know. Of the links alone: launching, a library's protocol and its waiting are in neither.
#pragma once

#include <vector>

#include "netmodel/network.h"

namespace sibyl {

struct SimulatedExchange {
  Collective collective = Collective::all_reduce;
  Bytes bytes;
  GroupPlacement placement;
  Algorithm algorithm = Algorithm::automatic;  // asked for; in the answer, what runs
  double imbalance = 1.0;                      // of an all-to-all: Network::uneven_all_to_all
  Seconds closed_form = {}, alone = {};
  Seconds at_once = {};  // when it ends if all of them begin together
};

}  // namespace sibyl
