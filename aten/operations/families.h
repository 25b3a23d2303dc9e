// One overload per operation, defined in the file of its family, or in the operation's own. Operands and results as in
// run_operation.h; operands are valid for the operation (the importer checked them): ATen throws c10::Error where they
// are not.
#pragma once

#include <torch/types.h>
#include <vector>

#include "aten/versions.h"
#include "models/operations/operations.h"
#include "models/shape.h"

namespace sibyl::aten {

using Tensors = std::vector<at::Tensor>;
using Shapes = std::vector<Shape>;

// matrix.cpp
at::Tensor run(const Linear& op, const Tensors& in);
at::Tensor run(const MatMul& op, const Tensors& in);

// attention.cpp
at::Tensor run(const Attention& op, const Tensors& in);

// spatial.cpp
at::Tensor run(const Convolution& op, const Tensors& in);
at::Tensor run(const Pool& op, const Tensors& in);
at::Tensor run(const Pad& op, const Tensors& in);
at::Tensor run(const Resize& op, const Tensors& in, const Shapes& out);

// normalization.cpp
at::Tensor run(const Normalization& op, const Tensors& in);
at::Tensor run(const LocalResponseNorm& op, const Tensors& in);
at::Tensor run(const Softmax& op, const Tensors& in);
at::Tensor run(const Dropout& op, const Tensors& in);

// elementwise.cpp
at::Tensor run(const Unary& op, const Tensors& in);
at::Tensor run(const Binary& op, const Tensors& in);
at::Tensor run(const Where& op, const Tensors& in);
at::Tensor run(const Cast& op, const Tensors& in);
at::Tensor run(const Copy& op, const Tensors& in);

// layout.cpp
at::Tensor run(const Reshape& op, const Tensors& in, const Shapes& out);
at::Tensor run(const Transpose& op, const Tensors& in);
at::Tensor run(const Concat& op, const Tensors& in);
at::Tensor run(const Slice& op, const Tensors& in);
Tensors run(const Split& op, const Tensors& in);
at::Tensor run(const Gather& op, const Tensors& in);
at::Tensor run(const Expand& op, const Tensors& in, const Shapes& out);
at::Tensor run(const Embedding& op, const Tensors& in);

// reduction.cpp
at::Tensor run(const Reduce& op, const Tensors& in);
at::Tensor run(const CrossEntropy& op, const Tensors& in);
at::Tensor run(const MeanSquaredError& op, const Tensors& in);

// shared.cpp
at::Tensor partial_embedding(const at::Tensor& table, const at::Tensor& ids);  // rows of zeros for ids of -1
Tensors run(const ClassStatistics& op, const Tensors& in);
at::Tensor run(const NormStatistics& op, const Tensors& in);
at::Tensor run(const ApplyNorm& op, const Tensors& in);

// experts.cpp
Tensors run(const TopK& op, const Tensors& in);
Tensors run(const Dispatch& op, const Tensors& in, const Shapes& out);
at::Tensor run(const Combine& op, const Tensors& in);
at::Tensor run(const GroupedLinear& op, const Tensors& in);

// The operand at `index`, undefined where it is absent; and as ATen takes optional operands.
inline at::Tensor operand(const Tensors& in, std::size_t index) { return index < in.size() ? in[index] : at::Tensor(); }
inline Optional<at::Tensor> optional_operand(const Tensors& in, std::size_t index) {
  const at::Tensor tensor = operand(in, index);
  return tensor.defined() ? Optional<at::Tensor>(tensor) : nothing;
}

// As an operation's own file sees them (models/operations/README.md).
struct OwnOperands {
  const Tensors& in;
  const at::Tensor& operator[](std::size_t i) const { return in.at(i); }
  [[nodiscard]] at::Tensor indices(std::size_t i) const { return in.at(i).to(at::kLong); }  // ATen takes no others
};
template <class Op>
requires requires(const Op& op, const OwnOperands& in) { op.run(in); }
at::Tensor run(const Op& op, const Tensors& in) { return op.run(OwnOperands{in}); }

}  // namespace sibyl::aten
