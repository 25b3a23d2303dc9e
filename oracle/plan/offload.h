// Optimizer state that lies in the memory of the host or in storage, and comes to the device for its update alone
// (ZeRO-Offload: Ren et al., USENIX ATC 2021; ZeRO-Infinity: Rajbhandari et al., SC 2021; as Calculon's optimizer
// offloading prices it: Isaev et al., SC 2023).
//
// Parameters are updated in blocks, each of as many in a row as have a bucket's size of state. While block i is
// updated, block i + 1 is read and block i - 1 written, so at most three of them are on the device, after backward has
// given up its activations. The copies have a stream of their own, in the order
//   in 0, in 1, out 0, in 2, out 1, in 3, ...
// where "in i + 2" and "out i" may begin when block i has been updated. The step ends when all is written. Each rank
// moves the state that it has: with ZeRO its parts. The update runs on the device, as it does without; DeepSpeed's runs
// on the host. Parameters that lie outside (offload_parameters.h) come and go with the blocks, too.
#pragma once

#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

// Blocks on the device at a time: the one that is updated, the next and the last.
inline constexpr std::size_t blocks_at_once = 3;

// f32 tensors of the parameter's shape that the optimizer keeps for it.
int optimizer_states(OptimizerKind kind);
// With the masters of parameters of two bytes.
int state_tensors(const Stage& stage);

// What there is no way to do.
Result<void> check_offload(const Strategy& strategy);

// After it is known who holds which part of what (plan/zero.h).
void offload_state(Stage& stage, const Strategy& strategy);

// What is updated by itself, of each so many bytes that lie outside, joined to blocks of `least` and more: behind which
// each block ends.
std::vector<std::size_t> block_ends(const std::vector<std::int64_t>& bytes, Bytes least);
// How so many blocks come and go.
std::vector<OffloadCopy> copies_of_blocks(std::size_t count);

// Elements of what is updated in a block, one by one: of parameters, and of the parts that rank `place` of those who
// hold all parts has. Rank 0's are the largest.
std::vector<std::int64_t> updated_elements(const Stage& stage, const StateBlock& block, int place = 0);
// Of what lies outside of the block.
struct BlockBytes {
  std::int64_t state = 0, parameters = 0;
  [[nodiscard]] std::int64_t total() const { return state + parameters; }
};
BlockBytes block_bytes(const Stage& stage, const StateBlock& block, int place = 0);

}  // namespace sibyl
