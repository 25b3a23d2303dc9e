// A calibration taken on a cluster says what that cluster is: as many nodes and devices as were measured, links as fast
// as its messages were.
#pragma once

#include "calibration/calibration.h"
#include "netmodel/topology.h"

namespace sibyl {

TopologySpec measured_topology(const Calibration& calibration);

// The median of the overlap samples taken beside this library's all-reduce (beside its own, where there is none of that);
// none = no slow-down.
OverlapSample typical_overlap(const Calibration& calibration, Algorithm library = Algorithm::automatic);

// Those whose messages' length is known, beside its own library's all-reduce, the shortest first.
std::vector<OverlapSample> overlap_by_message(const Calibration& calibration);

// Of storage, reading its largest sample; 0 where none was taken.
BytesPerSecond reading_rate(const Calibration& calibration);
BytesPerSecond writing_rate(const Calibration& calibration);  // the same, writing

}  // namespace sibyl
