// ONNX operators whose operations say in their own files what they are (models/operations/own_file.h).
#pragma once

#include <numeric>
#include <vector>

#include "models/onnx/lowering.h"

namespace sibyl::onnx_import {

template <class Op>
Result<Lowering> from_own_file(const Node& node) {
  SIBYL_TRY(const Op op, Op::from(node));
  Shape shape = node.shape(0);
  if constexpr (requires { Op::result(node); }) shape = Op::result(node);
  std::vector<std::size_t> inputs(Op::operands);
  std::iota(inputs.begin(), inputs.end(), 0);
  return single(node, op, inputs, std::move(shape), node.dtype(0));
}

// A row for each of `Ops` that names an operator.
template <class... Ops>
std::vector<Operator> own_file_operators(const std::variant<Ops...>*) {
  std::vector<Operator> rows;
  const auto add = [&]<class Op>(const Op*) {
    if constexpr (requires { Op::onnx_name; }) rows.push_back({Op::onnx_name, from_own_file<Op>, Op::operands});
  };
  (add(static_cast<const Ops*>(nullptr)), ...);
  return rows;
}

}  // namespace sibyl::onnx_import
