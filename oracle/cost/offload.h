// How long copies take between a device and the place where state lies outside it, and how much lies there.
//
// A copy to or from host memory takes bytes / host link: what cluster.yaml says of it (`host_link`); else four fifths
// of what 16 lanes of the PCIe generation of the device's architecture carry in a direction, which is what large copies
// from pinned memory reach; where the device is the processor, half its memory's bandwidth, as each byte is read and
// written. None of these is a measurement, and they are called estimated.
//
// A copy to or from storage takes bytes / (a node's rate / ranks on it), by the rates that `sibyl calibrate io`
// measured for reading and for writing; what was not measured is said by the cluster, or a data-centre drive's. On a
// GPU it passes through the host, while it is read: the slower of the two ways counts.
#pragma once

#include "calibration/cluster.h"
#include "oracle/cost/price.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// Of the stage's copies, in their order; the first rank's, whose parts are the largest.
std::vector<PricedCopy> price_copies(const Plan& plan, const Stage& stage, const Cluster& cluster);

// Of what each segment keeps outside.
std::vector<PricedStage::Kept> price_kept(const Plan& plan, const Stage& stage, const Cluster& cluster);

// What lies outside the devices of one node, the fullest: in the host's memory, and in storage. Of what lies in storage
// a host of GPUs holds as much as is on its way.
struct OutsideBytes {
  Bytes host, storage;
};
OutsideBytes outside_bytes(const Plan& plan, const Cluster& cluster);

}  // namespace sibyl
