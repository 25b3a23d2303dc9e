// Memory of one device over one training step, as the framework allocates it.
//
// Walks the step in the order it runs and keeps, for every storage (tensors that are views share one), who still holds
// it: forward consumers to come, and autograd until the backward that needs it. Gradients live from the backward that
// makes them to the last backward that reads them; parameters' gradients until the optimizer has run. A kernel's own
// workspace counts while it runs. Every allocation is rounded up to the allocator's granularity (64 B on the CPU, 512 B
// in CUDA's caching allocator); on CUDA all of them also go through a model of that allocator (caching_allocator.h),
// which takes more than they fill.
#pragma once

#include <string>
#include <vector>

#include "oracle/cost/price.h"
#include "oracle/memory/reuse.h"
#include "oracle/plan/plan.h"
#include "oracle/prediction.h"

namespace sibyl {

class MemoryRecorder;  // recorder.h

struct Footprint {
  MemoryBreakdown peak;    // and what it is made of at that moment
  std::string peak_step;   // "forward", "backward", "optimizer"
  bool exhausted = false;  // the allocator asked for more than the device has: it would have stopped there
};

// Which of a step's micro-batches are walked: all, or as many as show the same. What a caching allocator keeps may
// still grow by a segment in those left out, once in thousands of strategies.
enum class MicroBatches { all, enough };

// `recorder`, if there is one, hears of all that is taken and given back (history.h).
Footprint footprint(const Stage& stage, const PricedStage& priced, const Strategy& strategy, const Device& device,
                    MicroBatches which = MicroBatches::enough, MemoryRecorder* recorder = nullptr);

// Of a pipeline's coordinate, whose stages take turns. Between a stage's passes over a micro-batch autograd keeps what
// each needs, and the rank what it received (its gradient is collected there) and what it sent (backward begins there);
// inputs come anew with each micro-batch. `priced` is parallel to plan.stages.
Footprint footprint(const Plan& plan, const std::vector<PricedStage>& priced, int coordinate, const Device& device,
                    MicroBatches which = MicroBatches::enough, MemoryRecorder* recorder = nullptr);

// What the kernels of a coordinate's ranks touch in a step that follows another like it, and how long ago they did
// last.
Reuse reuse_of(const Plan& plan, const std::vector<PricedStage>& priced, int coordinate, const Device& device);

}  // namespace sibyl
