// What training does with one operation: the work of its passes and what autograd keeps between them, as PyTorch does.
//
// Work counts a multiply-add as 2 FLOPs and the least memory traffic: every operand read once, every result written once.
// `gradients` is a bit mask over the operands: bit i set = the backward pass computes the gradient of input i
// (a first layer's convolution computes its weight's but not its input's).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "models/signature.h"

namespace sibyl {

enum class Pass { forward, backward };

// Where the framework runs: PyTorch keeps different things on each (dropout's mask is f32 on the CPU, bool on CUDA).
enum class Backend { cpu, cuda };

struct Work {
  Flops flops;
  Bytes read;
  Bytes written;
  bool operator==(const Work&) const = default;
};

// A tensor kept from forward to backward.
struct Saved {
  enum class What { input, output, extra };  // an operand, a result, or a tensor that is neither (mask, indices, statistics)
  What what = What::input;
  std::size_t index = 0;  // of the operand or result
  Bytes bytes;            // of an extra
  bool operator==(const Saved&) const = default;
};

struct TrainingRule {
  Work forward;
  Work backward;
  std::vector<Saved> saved;
  bool view = false;  // the results share the first operand's memory
  bool operator==(const TrainingRule&) const = default;
};

TrainingRule training_rule(const Signature& signature, std::uint32_t gradients, Backend backend);

}  // namespace sibyl
