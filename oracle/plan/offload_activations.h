// What blocks that run again keep for it, in the memory of the host or in storage (DeepSpeed's cpu_checkpointing:
// Rajbhandari et al., "ZeRO-Infinity", SC 2021, section 5.1.2).
//
// A segment's inputs are copied out while it runs, and leave the device at its end. They come back for its backward:
// the last segment's from when backward begins, each other's from when the backward of the one behind it begins. So of
// two segments there is something on the device at a time. The copies have the device's stream of copies, one after the
// other.
//
// Only what nobody else wants lies outside: activations that this segment's steps alone read, that are no views, and
// that no step keeps. What several blocks read (an encoder's result) stays, and so does what a pipeline's stage has
// from another or hands on, which its rank holds for that. Of a pipeline each micro-batch that is on its way has a
// place outside of its own.
#pragma once

#include "oracle/plan/plan.h"

namespace sibyl {

Result<void> check_activations(const Strategy& strategy);

// After it is known what runs again.
void offload_activations(Stage& stage, const Strategy& strategy);

// Of each segment of a program that runs again, what of its inputs may lie outside.
std::vector<std::vector<LocalTensorId>> kept_apart(const Stage& program, const std::vector<Segment>& segments);

// Of one micro-batch: of one segment, and of all.
std::int64_t bytes_of(const Stage& stage, const std::vector<LocalTensorId>& kept);
std::int64_t kept_outside_bytes(const Stage& stage, std::size_t segment);
std::int64_t kept_outside_bytes(const Stage& stage);
// Micro-batches whose forward has begun and whose backward has not ended, at most; where its parts are taken apart, the
// first of them.
int most_on_their_way(const Stage& stage);
// The nearest segment before this one of which something lies outside; `segment` itself where there is none.
// Stage::recomputed's size stands for the end.
std::size_t outside_before(const Stage& stage, std::size_t segment);

}  // namespace sibyl
