#include "models/onnx/operators/families.h"
#include "models/onnx/operators/window.h"

namespace sibyl::onnx_import {
namespace {

Result<Lowering> pool(const Node& node) {
  const Shape& x = node.shape(0);
  if (x.size() < 3) return fail("pooling needs a rank of 3 or more; the input is " + to_string(x));
  SIBYL_TRY(Window window, read_window(node, spatial(x), {}));
  Pool attributes;
  attributes.kind = node.op_type() == "MaxPool" ? PoolKind::max : PoolKind::average;
  attributes.ceil_mode = node.integer("ceil_mode", 0) != 0;
  attributes.count_include_pad = attributes.kind == PoolKind::average && node.integer("count_include_pad", 0) != 0;
  Shape y{x[0], x[1]};
  for (std::size_t i = 0; i + 2 < x.size(); ++i) {
    y.push_back(positions(window, i, x[i + 2], attributes.ceil_mode));
    if (y.back() < 1) return fail("the kernel is larger than the padded input " + to_string(x));
  }
  attributes.kernel = window.kernel;
  attributes.stride = window.stride;
  attributes.dilation = window.dilation;
  attributes.pad_begin = window.pad_begin;
  attributes.pad_end = window.pad_end;
  return single(node, std::move(attributes), {0}, std::move(y), node.dtype(0));
}

Result<Lowering> global_pool(const Node& node) {
  Shape y = node.shape(0);
  if (y.size() < 3) return fail("pooling needs a rank of 3 or more; the input is " + to_string(y));
  for (std::size_t i = 2; i < y.size(); ++i) y[i] = 1;
  Pool attributes;
  attributes.kind = node.op_type() == "GlobalMaxPool" ? PoolKind::max : PoolKind::average;
  attributes.global = true;
  return single(node, std::move(attributes), {0}, std::move(y), node.dtype(0));
}

}  // namespace

std::span<const Operator> pooling_operators() {
  static constexpr Operator table[] = {
      {"MaxPool", pool},
      {"AveragePool", pool},
      {"GlobalAveragePool", global_pool},
      {"GlobalMaxPool", global_pool},
  };
  return table;
}

}  // namespace sibyl::onnx_import
