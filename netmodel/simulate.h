// Exchanges on a fabric flow by flow (fabric/contention/simulation.h) beside their closed form, and several at once,
// which the closed form does not know; and step by step (fabric/contention/steps.h), where rounds that are alike are
// not taken for one. Of the links alone: launching, a library's protocol and its waiting are in none of these.
#pragma once

#include <cstdint>
#include <optional>
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
  // Alone, and of how many messages, where that was asked for.
  struct Steps {
    Seconds time;
    std::int64_t messages = 0;
  };
  std::optional<Steps> steps = {};
};

}  // namespace sibyl
