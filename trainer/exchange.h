// Exchanges between operations, run: what a Transfer moves, and the autograd node that moves it forward and back.
//
// One node for every kind: forward performs the exchange's `forward`, backward its `backward`, both by perform(). All
// ranks run the same program and autograd runs the latest node first, so the ranks of a group meet in the same order.
#pragma once

#include <torch/types.h>

#include "comm/communicator.h"
#include "oracle/plan/plan.h"

namespace sibyl::trainer {

// Packs, sends, receives and unpacks; blocking. `communicator` is the axis's. With `overwrite` a sum may be taken in
// x's own memory. The result is contiguous; where nothing moves it shares x's memory.
at::Tensor perform(const Transfer& transfer, const at::Tensor& x, Communicator& communicator, bool overwrite);

// The exchange forward. Where x requires its gradient and grad mode is on, backward is recorded. The exchange and the
// communicator must live until then.
at::Tensor run_exchange(const Exchange& exchange, const at::Tensor& x, Communicator& communicator, bool overwrite);

}  // namespace sibyl::trainer
