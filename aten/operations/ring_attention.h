// Attention of a rank's queries with keys and values that come round from all ranks of a ring, a part at a time, while
// it computes with the part before (Liu, Zaharia, Abbeel, "Ring attention with blockwise transformers for near-infinite
// context", 2023).
//
// Of each query forward keeps the greatest score so far, the sum of exponentials below it and what they weigh, and
// scales these when a greater score comes; what is kept for backward is the result and the logarithm of the sum.
// Backward makes the probabilities again from that (Dao, "FlashAttention-2", 2023): keys and values come round once
// more, and behind each part the sums of its gradients, which end where the part is at home. Scores and sums are f32.
#pragma once

#include <torch/types.h>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/operations/operations.h"

namespace sibyl::aten {

// A rank's place in the ring. What it passes goes to the next rank, and what arrives is from the one before.
class Ring {
 public:
  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  virtual ~Ring() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  // Begins to pass these on: they must stay as they are until arrived(), which waits for as many of the same shapes.
  virtual void pass(std::vector<at::Tensor> tensors) = 0;
  virtual std::vector<at::Tensor> arrived() = 0;
};

// The last rank of so many, by itself: what it passes on is what arrives. For the time that the kernels take.
std::shared_ptr<Ring> one_of_a_ring(std::int64_t ranks);

at::Tensor ring_attention(const Attention& op, const std::vector<at::Tensor>& in, std::shared_ptr<Ring> ring);

}  // namespace sibyl::aten
