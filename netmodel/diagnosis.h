// What limits a measured network, in words.
//
// Samples are held against each other and, where it is known, against what the machine is rated at. Rules of thumb,
// each with the figure it is made of; none of it is used for predictions. What samples cannot tell is said, too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netmodel/network.h"
#include "netmodel/topology.h"

namespace sibyl {

struct Finding {
  enum class Kind {
    limit,    // something is slower than it should be
    fine,     // looked at, and as it should be
    unknown,  // no sample tells
  };
  Kind kind = Kind::fine;
  std::string what;    // "one message between nodes reaches 2.95 GB/s of the 12.5 GB/s that an adapter is rated at"
  std::string advice;  // what to look at; empty where there is nothing to do
};
std::string_view to_string(Finding::Kind kind);

struct MeasuredNetwork {
  TopologySpec machine;                 // counts and kinds
  std::optional<BytesPerSecond> rated;  // of one adapter, by its data sheet
  std::vector<PointToPointSample> messages;
  std::vector<CollectiveSample> collectives;
  std::vector<PairSample> pairs = {};
};

// In the order in which they matter: limits first.
std::vector<Finding> diagnose(const MeasuredNetwork& network);

}  // namespace sibyl
