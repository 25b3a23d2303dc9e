// Exchanges of tensor parallelism that go on beside the products they feed or come from: Transformer Engine's user
// buffers ("ub_tp_comm_overlap"), Flux, PyTorch's asynchronous tensor parallelism.
//
// A product whose operand is gathered from p ranks begins with the rank's own part while the next one arrives, round a
// ring; one whose result is scattered hands a part on while it makes the next. So a product of length g hides up to
// g (p - 1) / p of its exchange of length c, and what computation waits for is c - min(c, g (p - 1) / p) (Wang et al.,
// "Overlap communication with dependent computation via decomposition", ASPLOS 2023). The same backward, with the
// products of both gradients. That products in parts are a little slower is not counted.
#pragma once

#include <functional>
#include <vector>

#include "oracle/cost/price.h"

namespace sibyl {

// What a step's kernels take in a row; backward in both its parts.
struct KernelTimes {
  Seconds forward, backward;
};
// By how much an exchange may be hidden in either pass: the products that it feeds, or the one that it comes from.
struct BesideProducts {
  std::size_t exchange = 0;  // step
  struct Product {
    std::size_t step = 0;
    Seconds forward, backward;
  };
  std::vector<Product> products;
};
// Of all exchanges over tensor ranks beside which there are some.
std::vector<BesideProducts> beside_products(const Mesh& mesh, const Stage& stage,
                                            const std::function<KernelTimes(std::size_t step)>& times);

// Takes what products hide off the exchanges beside them; kernels and exchanges are priced.
void hide_behind_products(const Plan& plan, const Stage& stage, PricedStage& priced);

}  // namespace sibyl
