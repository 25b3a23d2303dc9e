// Which library carries a framework's messages, and what they cost compute.
#pragma once

#include "calibration/cluster.h"
#include "oracle/simulate/streams.h"
#include "oracle/strategy.h"

namespace sibyl {

// automatic: the network's own choice. PyTorch's DistributedDataParallel exchanges through Gloo between CPUs, and through
// NCCL, as any other, between GPUs.
Algorithm exchange_algorithm(const Strategy& strategy, const Cluster& cluster);

// What it takes the host to launch a kernel that no operation of the model asks for, as a share of the device's
// dispatch: sums of gradients, copies into buckets and back. A framework launches these from loops in C++: 5 us, of
// which CUDA's call is 1 to 3; where operations take no longer than that, these take as long as they.
double bare_launch(const Device& device);

// Measured, or said by the cluster; else between GPUs what NCCL's channels take of the multiprocessors
// (netmodel/channels.h), and messages as if alone.
Slowdown slowdown_of(const Strategy& strategy, const Cluster& cluster);

}  // namespace sibyl
