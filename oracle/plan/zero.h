// Redundancy that replicas need not keep (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models", SC 2020; as PyTorch's FullyShardedDataParallel runs it: Zhao et al., VLDB 2023).
//
// Of every bucket of gradients each of the p ranks that sum it holds a part, 1/p of its elements.
//   1, 2  a bucket's all-reduce becomes a reduce-scatter; the rank updates its part, and the parameters are gathered
//         after the update. (p-1)/p of 2 W bytes, as an all-reduce sends. With 2 two buffers serve all buckets in
//         turn, and of gradients only parts stay.
//   3     a rank holds the parameters, too, by parts. Buckets are those of units: blocks (plan/blocks.h), and between
//         them stretches of at most a bucket; a unit's parameters are gathered before its steps, forward and backward:
//         (p-1)/p of 3 W bytes. What several units read (tied weights) is in a unit of its own that spans all steps,
//         gathered once.
// Parts may be those of fewer replicas than there are (FSDP's hybrid sharding; Zhang et al., "MiCS", VLDB 2022):
// neighbours scatter and gather among themselves, and a part's gradients are then all-reduced over those who hold the
// same part. Gradients of micro-batches but the last are summed whole where they are (PyTorch's no_sync), unless every
// micro-batch's are to be reduced: then backward ends when all buckets have been, and a rank adds its parts of them to
// those before.
#pragma once

#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

// Can more of what ranks hold alike be dealt out among them?
bool can_shard_more(const Graph& graph, const Strategy& strategy);

// After the stage's `gradients` are known.
void shard_state(Stage& stage, const Strategy& strategy);

// Are there parts of gradients, to which every micro-batch's can be added (Strategy::reduce_each)?
Result<void> check_reduce_each(const Strategy& strategy);
// And are all that the stage sums over ranks such?
Result<void> check_reduced_each(const Stage& stage);
Result<void> check_reduced_each(bool some_by_parts, bool all_by_parts);  // the same of what is known of them

// By tensor: whether it is a parameter whose sync is sharded.
std::vector<bool> sharded_parameters(const Stage& stage);
bool has_unit(const Stage& stage, std::size_t sync, std::size_t bucket);
// The unit spans all steps: what was gathered for forward serves backward, too. Not in a pipeline, where other passes come between.
bool stays_gathered(const Stage& stage, const ParameterUnit& unit);

// What elements [begin, end) of a bucket are of its parameters.
struct Piece {
  LocalTensorId parameter;
  std::int64_t offset = 0, elements = 0;  // in the parameter
  std::int64_t place = 0;                 // in the bucket
};
std::vector<Piece> pieces(const Stage& stage, const Bucket& bucket, std::int64_t begin, std::int64_t end);

// Elements of the bucket that rank `index` of the group holds; the first ranks hold the most.
struct BucketPart {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};
BucketPart part_of(const Bucket& bucket, int parts, int index);

}  // namespace sibyl
