// Wires between nodes that several of a pipeline's coordinates send over.
//
// What a coordinate sends the next one, and what it sends the one before it, is a lane each. The messages of all lanes
// that leave a node at once share the wire that leaves it, those that reach it the wire that reaches it. Messages of one
// lane on one node go at the same time, and what each takes knows of the others (Pairs); of other lanes' it depends on
// the schedule whether they are there (simulate/meeting_messages.h).
#pragma once

#include <vector>

#include "calibration/cluster.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// A wire that a lane's messages cross, and those of other lanes, too.
struct SharedWire {
  int wire = 0;      // one number in all lanes that cross it
  int messages = 1;  // of this lane at once
  // By how many messages of all lanes are on it: how many times as long one of this lane takes as with its like alone.
  std::vector<double> slowed;
};

// Of what `coordinate` sends forward to the next one, or backward to the one before it; alike wires of several replicas
// are one. `around`: coordinates hold several stages, so that the last one's next is the first. Empty: it meets nobody
// who would slow it.
std::vector<SharedWire> shared_wires(const Mesh& mesh, bool around, int coordinate, Pass pass, const Cluster& cluster);

}  // namespace sibyl
