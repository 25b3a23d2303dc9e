// Exchanges of tensor parallelism that go on beside the products they feed or come from: Transformer Engine's user
// buffers ("ub_tp_comm_overlap"), Flux, PyTorch's asynchronous tensor parallelism.
//
// A product whose operand is gathered from p ranks begins with the rank's own part while the next one arrives, round a
// ring; one whose result is scattered hands a part on while it makes the next. So a product of length g hides up to
// g (p - 1) / p of its exchange of length c, and what computation waits for is c - min(c, g (p - 1) / p) (Wang et al.,
// "Overlap communication with dependent computation via decomposition", ASPLOS 2023). The same backward, with the
// products of both gradients. That products in parts are a little slower is not counted.
#pragma once

#include "oracle/cost/price.h"

namespace sibyl {

// Takes what products hide off the exchanges beside them; kernels and exchanges are priced.
void hide_behind_products(const Plan& plan, const Stage& stage, PricedStage& priced);

}  // namespace sibyl
