// First half of shard(): how every tensor and every operation of a program is shared, before anything is rewritten.
#pragma once

#include <optional>
#include <vector>

#include "oracle/plan/plan.h"
#include "oracle/plan/sharding/policy.h"

namespace sibyl {

struct Choices {
  std::vector<Variant> variants;  // parallel to the stage's steps
  std::vector<std::optional<Layout>>
      layouts;                         // by LocalTensorId, once summed; empty: a source without gradient is held in any
  std::vector<bool> partial_gradient;  // by LocalTensorId, of sources: every use of it asks for a partial gradient
  bool shares = false;                 // something is split
};

Choices choose(const Stage& stage, const Policy& policy, int ways);

}  // namespace sibyl
