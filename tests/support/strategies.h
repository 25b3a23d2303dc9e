// Strategies that tests ask for.
#pragma once

#include <cstdint>

#include "oracle/strategy.h"

namespace sibyl::test {

inline Strategy data_parallel(int replicas, std::int64_t batch) {
  Strategy strategy;
  strategy.data = replicas;
  strategy.global_batch = batch;
  return strategy;
}

// Micro-batches of two samples.
inline Strategy pipelined(int stages, std::int64_t micro_batches) {
  Strategy strategy;
  strategy.pipeline = stages;
  strategy.accumulation = micro_batches;
  strategy.global_batch = 2 * micro_batches;
  return strategy;
}

}  // namespace sibyl::test
