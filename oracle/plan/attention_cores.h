// Where attention mixes the positions of a sequence: the product of queries with keys, what is done to these scores,
// and the product of the probabilities with values. One operation, or taken apart.
#pragma once

#include <cstddef>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

// The steps that make the scores and that mix the values; of a fused operation one step is both.
struct AttentionCore {
  std::size_t scores = 0, mix = 0;

  [[nodiscard]] bool fused() const { return scores == mix; }
  bool operator==(const AttentionCore&) const = default;
};

// In order of `mix`.
std::vector<AttentionCore> attention_cores(const Stage& stage);

// Done to scores and probabilities element by element or row by row: scale, mask, softmax, dropout.
bool is_within_core(const Step& step);

}  // namespace sibyl
