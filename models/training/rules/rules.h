// The rules, one for each operation, and what they share.
//
// How work is counted: a multiply-add is 2 FLOPs; an addition, multiplication, comparison, division, square root or
// transcendental function 1. A kernel reads each of its operands once and writes its results once; where the framework
// runs several kernels for one operation (a convolution's two gradients, softmax and dropout inside composite
// attention), each kernel's traffic counts. Indices are int64, masks bool, statistics at least f32.
//
// A rule stands in the operation's own file (models/operations/README.md), or in a file here and is declared below.
#pragma once

#include <algorithm>

#include "models/training/training.h"

namespace sibyl::rules {

struct Context {
  const Signature& signature;
  std::uint32_t gradients;
  Backend backend;

  [[nodiscard]] bool wants(std::size_t input) const { return ((gradients >> input) & 1U) != 0; }
  [[nodiscard]] bool has(std::size_t input) const;  // false for an absent optional operand
  [[nodiscard]] const Shape& input_shape(std::size_t i) const;
  [[nodiscard]] const Shape& output_shape(std::size_t i = 0) const;
  [[nodiscard]] double in(std::size_t i) const;       // elements of operand i; 0 when it is absent
  [[nodiscard]] double out(std::size_t i = 0) const;  // elements of result i; 0 when it is absent
  [[nodiscard]] double element() const { return size_in_bytes(signature.dtype); }
  [[nodiscard]] double statistic() const { return std::max(4.0, element()); }  // mean, variance, log-sum-exp
  [[nodiscard]] bool cpu() const { return backend == Backend::cpu; }
};

// Elements of operand 0 with its last dimensions padded: where the two ends differ the framework pads in a call of its
// own.
double padded_elements(const Context& c, const Ints& begin, const Ints& end);
inline double last_extent(const Shape& shape) { return shape.empty() ? 1.0 : static_cast<double>(shape.back()); }

TrainingRule rule(const Convolution& op, const Context& c);
TrainingRule rule(const Linear& op, const Context& c);
TrainingRule rule(const MatMul& op, const Context& c);
TrainingRule rule(const Attention& op, const Context& c);
TrainingRule rule(const Normalization& op, const Context& c);
TrainingRule rule(const Pool& op, const Context& c);
TrainingRule rule(const Unary& op, const Context& c);
TrainingRule rule(const Binary& op, const Context& c);
TrainingRule rule(const Where& op, const Context& c);
TrainingRule rule(const Softmax& op, const Context& c);
TrainingRule rule(const Dropout& op, const Context& c);
TrainingRule rule(const Embedding& op, const Context& c);
TrainingRule rule(const Reduce& op, const Context& c);
TrainingRule rule(const Reshape& op, const Context& c);
TrainingRule rule(const Transpose& op, const Context& c);
TrainingRule rule(const Concat& op, const Context& c);
TrainingRule rule(const Slice& op, const Context& c);
TrainingRule rule(const Split& op, const Context& c);
TrainingRule rule(const Gather& op, const Context& c);
TrainingRule rule(const Pad& op, const Context& c);
TrainingRule rule(const Expand& op, const Context& c);
TrainingRule rule(const Resize& op, const Context& c);
TrainingRule rule(const Cast& op, const Context& c);
TrainingRule rule(const Copy& op, const Context& c);
TrainingRule rule(const LocalResponseNorm& op, const Context& c);
TrainingRule rule(const CrossEntropy& op, const Context& c);
TrainingRule rule(const MeanSquaredError& op, const Context& c);
TrainingRule rule(const ClassStatistics& op, const Context& c);
TrainingRule rule(const NormStatistics& op, const Context& c);
TrainingRule rule(const ApplyNorm& op, const Context& c);
TrainingRule rule(const OptimizerUpdate& op, const Context& c);
TrainingRule rule(const TopK& op, const Context& c);
TrainingRule rule(const Dispatch& op, const Context& c);
TrainingRule rule(const Combine& op, const Context& c);
TrainingRule rule(const GroupedLinear& op, const Context& c);

// Of an operation whose own file says it.
template <class Op>
requires requires(const Op& op, const Context& c) { op.training(c); }
TrainingRule rule(const Op& op, const Context& c) { return op.training(c); }

}  // namespace sibyl::rules
