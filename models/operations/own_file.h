// What the file of an operation may say of it, beside its attributes. Each room takes what it needs; templates, because
// the types of the rooms above are not known here. `c`, `in` and `node` below are theirs.
//
//   own_file = true
//   TrainingRule training(const auto& c) const    what it costs and what autograd keeps; c: rules::Context
//                                                 (models/training/rules/rules.h)
//   bool independent_along(std::size_t dim) const  ranks that share this dimension of every operand need nothing of each
//                                                 other; optional: without it the operation is never split
//   in_full = true                                optional: computed in f32 where others are in half precision (autocast)
//   auto run(const auto& in) const                one result, in ATen; in[i] are tensors, in.indices(i) those of indices
//                                                 as ATen takes them. Backward is autograd's.
//   std::optional<std::size_t> index_into(std::size_t operand) const
//                                                 optional: the dimension of operand 0 that this operand's integers
//                                                 number; nothing where it holds none
//
// and, where one ONNX operator is this operation:
//
//   onnx_name, operands                           the operator; how many of its inputs, the first, are tensors to work on
//   static Result<Op> from(const auto& node)      the attributes; node: onnx_import::Node (models/onnx/node.h)
//   static Shape result(const auto& node)         optional: the shape of the result, where it is not that of operand 0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "models/shape.h"
#include "models/training/rule.h"
