// Memory of one device over the time of a step, and what is alive where there is most of it.
//
// The walk of footprint(), told place by place: for each pass over each operation the most there is from when it starts
// until the next one does. When it starts is simulated (simulate/step.h, simulate/pipeline.h). The highest place is
// footprint()'s peak to the byte, and what is alive there adds up to it. What a caching allocator holds grows to what
// footprint() says is reserved, which may be at another place.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/cancelled.h"
#include "base/result.h"
#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/memory/footprint.h"
#include "oracle/memory/recorder.h"
#include "oracle/strategy.h"

namespace sibyl {

struct MemoryMoment {
  Seconds start;
  std::size_t name = 0;  // of MemoryHistory::names: what runs
  int micro_batch = -1;  // none: before the step, or in the update
  MemoryBreakdown most;  // `reserved`: the most that the process holds from then until the next, with its context
};

struct AliveMemory {
  std::string name;  // "conv1.weight", "gradient of relu1.y", "of fc2, kept for backward"
  MemoryKind kind = MemoryKind::activations;
  Bytes bytes;            // of all of them
  int count = 1;          // alike: optimizer states, copies
  std::string operation;  // that it is a result of, or is kept for; may be empty
};

struct MemoryHistory {
  Footprint footprint;
  std::vector<std::string> names;
  std::vector<MemoryMoment> moments;  // ascending in time
  Seconds end;                        // of the step, without waiting for other ranks
  std::size_t peak = 0;               // of `moments`
  std::vector<AliveMemory> alive;     // at the peak; the largest first

  [[nodiscard]] std::string where(std::size_t moment) const;  // "fc2 backward of micro-batch 3"
};

struct StepMemory {
  std::vector<Footprint> devices;  // by coordinate of the pipeline
  std::size_t coordinate = 0;      // whose history it is
  MemoryHistory history;
};

// `coordinate`: of the pipeline; the fullest device unless given. Fails where the model cannot be split so, and where
// `cancelled` ends it (code interrupted).
Result<StepMemory> step_memory(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                               std::optional<std::size_t> coordinate = {}, const Cancelled& cancelled = {});

}  // namespace sibyl
