// Why a collective takes as long as Network::collective() says: which algorithm and why, what answered (samples, or
// which terms of a formula), and on a fabric each round with its busiest link and the way of a message over it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netmodel/network.h"

namespace sibyl {

struct NetworkExplanation {
  // The samples that were carried to the answer.
  struct Samples {
    GroupPlacement placement;  // where they were taken
    int count = 0;
    Bytes from, to;
  };
  struct Round {
    std::string what;
    int times = 1;
    int messages = 0;  // at once, of all groups
    Bytes message;     // the one over the busiest link
    Seconds latency;   // of one time
    Seconds transfer;  // of one time
    std::string busiest_link;
    Bytes over_busiest_link;
    BytesPerSecond gives;            // that link
    std::vector<std::string> route;  // of that message, from device to device; the first of several ways
    [[nodiscard]] Seconds total() const { return (latency + transfer) * times; }
  };
  // What a message alone sees at one distance.
  struct Distance {
    std::string what;  // "inside a node", "between nodes, 2 levels of switches"
    int links = 0;
    Seconds latency;
    BytesPerSecond bandwidth;  // of the path
    Seconds message;           // of 1 MiB as messages are priced, alone
  };

  CollectiveEstimate estimate;
  std::string why;                                        // this algorithm
  std::vector<std::pair<Algorithm, Seconds>> candidates;  // what others would take, by formula
  std::optional<Protocol> protocol;                       // of a GPU library, by formula
  std::vector<std::pair<Protocol, Seconds>> protocols;    // what it would take in each, by formula
  std::string answered_by;  // "samples of this placement", "the formula over the fabric's links"…
  std::optional<Samples> samples;
  Seconds launch;
  Seconds by_formula;
  std::vector<Distance> distances;
  std::vector<Round> rounds;  // of a fabric
};

// What others use of its links, all the time: "30 % of each NIC and 5 % of each link between nodes". Empty: nothing.
std::string used_by_others(const Network& network);

}  // namespace sibyl
