// What NVLink and PCIe give, as NCCL counts it (src/graph/topo.h, 2.27): of one link, in one direction.
#pragma once

#include "base/units.h"
#include "netmodel/topology.h"

namespace sibyl::import {

// A step of NCCL's ring by LL (src/graph/tuning.cc); other protocols are counted beyond it
// (netmodel/collective/protocol.h).
inline constexpr Seconds nvlink_latency{0.6e-6}, pcie_latency{1e-6};

// By compute capability, 80 for 8.0.
constexpr BytesPerSecond nvlink_of(int compute_capability) {
  if (compute_capability >= 100) return BytesPerSecond{40.1e9};
  if (compute_capability >= 90) return BytesPerSecond{20.6e9};
  if (compute_capability == 86) return BytesPerSecond{12e9};
  if (compute_capability >= 70) return BytesPerSecond{20e9};
  return BytesPerSecond{18e9};
}

// 16 lanes of 16 GT/s move 24 GB/s.
constexpr BytesPerSecond pcie_of(double gigatransfers, double lanes) {
  return BytesPerSecond{1.5e9 * gigatransfers * lanes / 16};
}

}  // namespace sibyl::import
