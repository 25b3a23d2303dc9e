// A bucket of parameters that ranks hold by parts (zero.h), on this rank.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aten/dtype.h"
#include "oracle/plan/zero.h"
#include "trainer/outside.h"

namespace sibyl::trainer {

struct Shard {
  const Bucket* bucket = nullptr;
  BucketPart range;
  at::Tensor flat, own;             // parameters; the rank's part, of the flat tensor or apart from it
  std::vector<std::int64_t> place;  // of each parameter

  // Of a unit's (unit_gathering.h).
  const ParameterUnit* unit = nullptr;
  std::size_t unit_index = 0;
  bool gathered = true;
  std::size_t gathering = 0;  // number of the gathering to wait for
  OutsidePlace home;          // of `own`, which is then here only on its way
  std::size_t bringing = 0;   // number of the copy to wait for; 0: not on its way
  bool over = false;          // all of its gradients have arrived: nobody reads the parameters any more

  // Of its gradients (zero.cpp).
  at::Tensor buffer, gradient;        // of all, and the rank's part of them
  at::Tensor room;                    // that the buffer lies in, where it is one of those that go round
  std::vector<bool> filled, waiting;  // of each parameter; finished, while all buffers are of buckets before
  std::size_t count = 0;              // filled
  std::size_t arrived = 0;            // of these, in this backward
  std::size_t sending = 0;            // number of the reduce-scatter; 0: not sent
  bool harvested = false;

  [[nodiscard]] c10::ScalarType type() const { return aten::scalar_type(bucket->dtype); }
  [[nodiscard]] c10::ScalarType gradient_type() const { return aten::scalar_type(bucket->summed); }
};

}  // namespace sibyl::trainer
