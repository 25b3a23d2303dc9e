// Shares a stage's program between the ranks of one axis of the mesh.
//
// The result is the program of each of them: local shapes and attributes, and an Exchange wherever an operation needs a
// layout that its operand does not have. Programs that other axes have been through, exchanges and all, can be shared
// again.
//
// Layouts are chosen forward: a multiplication by a weight as the policy says, anything else in the way that sends
// the fewest bytes over both passes, given how its operands arrive; sums go to the policy's home at once. Parameters,
// buffers and inputs are held from the start as their first use wants them. A conversion serves every consumer that
// needs it, so that gradients meet before they are sent.
#pragma once

#include "models/graph.h"
#include "oracle/plan/plan.h"
#include "oracle/plan/sharding/policy.h"

namespace sibyl {

// Fails, code infeasible, where the axis finds nothing to share (undivided.h). `graph` names operations.
Result<Stage> shard(const Graph& graph, const Stage& stage, const Policy& policy, int ways);

}  // namespace sibyl
