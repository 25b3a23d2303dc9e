// How PyTorch's DistributedDataParallel groups gradients into buckets.
//
// Gradients are appended in the given order, those of each type to a bucket of their own; a bucket closes when its size
// reaches the cap (so it may exceed it by the last tensor). They are sent as they close, those that are left at the end
// as they were begun. The first bucket of each type has its own, smaller cap so that communication starts early. For
// the first step the order is that of the parameters reversed; the caps are applied in parameter order and the list of
// buckets is then reversed, so the small bucket is the last one sent. After the first step buckets are rebuilt in the
// order in which gradients arrived, the small bucket first. Source: torch/csrc/distributed/c10d/reducer.cpp
// (compute_bucket_assignment_by_size, rebuild_buckets).
#pragma once

#include <map>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

std::vector<Bucket> make_buckets(const Stage& stage, const std::vector<LocalTensorId>& order, Bytes first_cap, Bytes cap);

// One exchange for each set of axes over which parameters' gradients are summed. `ties`: of parameters that other
// pipeline stages hold too, all their stages, and a number that the stages know them by; they are exchanged after
// backward, in the order of these numbers.
struct Tie {
  std::vector<int> stages;
  std::size_t number = 0;
};
std::vector<GradientSync> gradient_syncs(const Stage& stage, const Strategy& strategy,
                                         const std::map<LocalTensorId, Tie>& ties = {});

}  // namespace sibyl
