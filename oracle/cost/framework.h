// Which library carries a framework's messages, and what they cost compute.
#pragma once

#include "calibration/cluster.h"
#include "oracle/simulate/streams.h"
#include "oracle/strategy.h"

namespace sibyl {

// automatic: the network's own choice. PyTorch's DistributedDataParallel exchanges through Gloo between CPUs, and through
// NCCL, as any other, between GPUs.
Algorithm exchange_algorithm(const Strategy& strategy, const Cluster& cluster);

// Measured, or said by the cluster; else between GPUs what NCCL's channels take of the multiprocessors
// (netmodel/channels.h), and messages as if alone.
Slowdown slowdown_of(const Strategy& strategy, const Cluster& cluster);

}  // namespace sibyl
