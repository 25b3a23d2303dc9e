// How long copies take between a device and the place where state lies outside it, and how much lies there.
//
// A copy to or from host memory takes bytes / host link, which a GPU's calibration may have measured; one to or from
// storage takes bytes / (a node's rate / ranks on it), by the rates that `sibyl calibrate io` measured for reading and
// for writing. What the cluster does not know of these is assumed as calibration/outside_rates.h says. What is not
// measured is called estimated. On a GPU what goes to storage passes through the host, while it is read: the slower of
// the two ways counts.
#pragma once

#include <string>
#include <vector>

#include "calibration/cluster.h"
#include "oracle/cost/price.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// Of one rank of a strategy's.
class CopyPrices {
 public:
  CopyPrices(const Strategy& strategy, const Cluster& cluster);  // the cluster must outlive it

  [[nodiscard]] PricedCopy of(std::int64_t bytes, Tier tier, OffloadCopy::Way way) const;
  // State and parameters in one copy, unless they lie in different places.
  [[nodiscard]] PricedCopy block(const BlockBytes& bytes, OffloadCopy::Way way) const;

 private:
  const Cluster& cluster_;
  Tier state_, parameters_;
  int ranks_;  // of a node
};

// Of the stage's copies, in their order; the first rank's, whose parts are the largest.
std::vector<PricedCopy> price_copies(const Plan& plan, const Stage& stage, const Cluster& cluster);

// Of the rank's part of each unit, to the device; none where they lie there.
std::vector<PricedCopy> price_brought(const Plan& plan, const Stage& stage, const Cluster& cluster);

// Of what each segment keeps outside.
std::vector<PricedStage::Kept> price_kept(const Plan& plan, const Stage& stage, const Cluster& cluster);

// Whether copies of such a strategy cross the link between device and host, and what rates of theirs are assumed, a
// sentence each (Prediction::assumed).
bool uses_host_link(const Strategy& strategy, const Cluster& cluster);
std::vector<std::string> assumed_outside(const Strategy& strategy, const Cluster& cluster);

// How much longer kernels and copies take while both are under way. On processors both are work of the same cores and
// the same memory, so copies to memory outside take turns with kernels: nothing is won by overlap. Measured: of two
// ranks on two processors, docs/offload.md.
double copies_slowdown(const Strategy& strategy, const Device& device);

// What lies outside the devices of one node, the fullest: in the host's memory, and in storage. Of what lies in storage
// a host of GPUs holds as much as is on its way.
struct OutsideBytes {
  Bytes host, storage;
};
OutsideBytes outside_bytes(const Plan& plan, const Cluster& cluster);

}  // namespace sibyl
