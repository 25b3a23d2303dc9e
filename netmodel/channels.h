// Channels of NCCL: thread blocks that carry a collective's data, each on a multiprocessor of its own while it runs,
// which kernels beside it do not have.
//
// In a node two rings for each NVLink, up to 24; over PCIe one ring, twice; between nodes two for each NIC, as NCCL's
// logs show ("Channel 00/24" on HGX A100, 12 on DGX-1 with V100, 16 on H800 and of eight NICs, 2 of one): its search
// finds as many rings as links carry, and takes each twice where their bandwidth allows (src/graph/search.cc).
#pragma once

#include "netmodel/topology.h"

namespace sibyl {

// Of a group over so many of the cluster's nodes, and one of GPUs: at least 1.
int nccl_channels(const TopologySpec& cluster, int nodes);

// How much slower kernels run that have the other multiprocessors: 1 where those are not known, or too few.
double slowdown_beside(int channels, int multiprocessors);

}  // namespace sibyl
