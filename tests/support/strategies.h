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

}  // namespace sibyl::test
