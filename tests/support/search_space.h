// Spaces that tests search.
#pragma once

#include <cstdint>

#include "oracle/search/space.h"

namespace sibyl::test {

inline SearchSpace space(int devices, std::int64_t batch) {
  SearchSpace s;
  s.fixed.global_batch = batch;
  s.devices = {devices};
  return s;
}

}  // namespace sibyl::test
