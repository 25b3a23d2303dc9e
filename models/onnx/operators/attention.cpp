// Attention where a file names it as one operator: ONNX's own (opset 23) and com.microsoft's.
#include <fmt/format.h>

#include <cmath>

#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

// [B, S, H*D] -> [B, H, S, D]
Result<Operand> split_heads(Steps& steps, Operand x, std::int64_t heads) {
  const Shape shape = steps.fact(x).shape;
  if (shape.size() == 4) return x;
  if (shape.size() != 3 || heads < 1 || shape[2] % heads != 0)
    return fail(fmt::format("{} heads do not divide {}", heads, to_string(shape)));
  return steps.transpose(steps.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Operand join_heads(Steps& steps, Operand x) {
  const Shape shape = steps.fact(x).shape;
  return steps.reshape(steps.transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

struct Heads {
  Operand q, k, v, mask;
};

Result<Operand> attend(Steps& steps, const Heads& heads, bool causal, double scale) {
  const Shape q = steps.fact(heads.q).shape, k = steps.fact(heads.k).shape, v = steps.fact(heads.v).shape;
  const bool fits = q.size() == 4 && k.size() == 4 && v.size() == 4 && q[0] == k[0] && k[0] == v[0] && k[1] == v[1] &&
                    k[1] > 0 && q[1] % k[1] == 0 && q[3] == k[3] && k[2] == v[2];
  if (!fits)
    return fail("queries " + to_string(q) + ", keys " + to_string(k) + " and values " + to_string(v) +
                " do not fit together");
  if (scale == 0.0) scale = 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(q[3], 1)));
  std::vector<Operand> operands{heads.q, heads.k, heads.v};
  if (heads.mask.from != Operand::From::absent) operands.push_back(heads.mask);
  return steps.add(Attention{causal, scale, 0.0}, std::move(operands), {q[0], q[1], q[2], v[3]});
}

Result<Lowering> attention(const Node& node) {
  if (node.has(4) || node.has(5)) return unsupported("it keeps past keys and values, which training does not");
  if (node.number("softcap", 0.0) != 0.0) return unsupported("it caps its scores");
  Steps steps(node);
  const std::int64_t heads = node.integer("q_num_heads", 0);
  Heads operands;
  SIBYL_TRY(operands.q, split_heads(steps, steps.input(0), heads));
  SIBYL_TRY(operands.k, split_heads(steps, steps.input(1), node.integer("kv_num_heads", heads)));
  SIBYL_TRY(operands.v, split_heads(steps, steps.input(2), node.integer("kv_num_heads", heads)));
  operands.mask = steps.input(3);
  SIBYL_TRY(Operand y, attend(steps, operands, node.integer("is_causal", 0) != 0, node.number("scale", 0.0)));
  if (node.rank(0) == 3) y = join_heads(steps, y);
  return std::move(steps).result(y);
}

// com.microsoft's Attention holds the projection of its input to q, k and v.
Result<Lowering> packed_attention(const Node& node) {
  if (node.has(4)) return unsupported("it keeps past keys and values, which training does not");
  const Shape &x = node.shape(0), &w = node.shape(1);
  if (x.size() != 3 || w.size() != 2 || x[2] != w[0] || w[1] % 3 != 0)
    return fail("input " + to_string(x) + " and weight " + to_string(w) + " do not fit together");
  Steps steps(node);
  Operand y = steps.add(MatMul{}, {steps.input(0), steps.input(1)}, {x[0], x[1], w[1]});
  if (node.has(2)) {
    SIBYL_TRY(y, steps.binary(BinaryKind::add, y, steps.input(2)));
  }
  const std::int64_t width = w[1] / 3, heads = node.integer("num_heads", 0);
  const auto part = [&](std::int64_t i) {
    return split_heads(steps, steps.add(Slice{{2}, {i * width}, {(i + 1) * width}, {1}}, {y}, {x[0], x[1], width}),
                       heads);
  };
  Heads operands;
  SIBYL_TRY(operands.q, part(0));
  SIBYL_TRY(operands.k, part(1));
  SIBYL_TRY(operands.v, part(2));
  SIBYL_TRY(const Operand z,
            attend(steps, operands, node.integer("unidirectional", 0) != 0, node.number("scale", 0.0)));
  return std::move(steps).result(join_heads(steps, z));
}

Result<Lowering> multi_head_attention(const Node& node) {
  for (std::size_t i = 3; i < node.input_count(); ++i)
    if (node.has(i)) return unsupported("its bias, masks or past keys and values");
  const std::int64_t heads = node.integer("num_heads", 0);
  Steps steps(node);
  Heads operands;
  SIBYL_TRY(operands.q, split_heads(steps, steps.input(0), heads));
  SIBYL_TRY(operands.k, split_heads(steps, steps.input(1), heads));
  SIBYL_TRY(operands.v, split_heads(steps, steps.input(2), heads));
  SIBYL_TRY(const Operand y,
            attend(steps, operands, node.integer("unidirectional", 0) != 0, node.number("scale", 0.0)));
  return std::move(steps).result(join_heads(steps, y));
}

}  // namespace

std::span<const Operator> attention_operators() {
  static constexpr Operator table[] = {
      {"Attention", attention, 3},
      {"Attention", packed_attention, 2, "com.microsoft"},
      {"MultiHeadAttention", multi_head_attention, 3, "com.microsoft"},
  };
  return table;
}

}  // namespace sibyl::onnx_import
