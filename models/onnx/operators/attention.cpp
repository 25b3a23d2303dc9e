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

// Rows of a table of cosines or sines as they broadcast to x[B, H, S, D]: [S, R], or [B, 1, S, R].
Operand angles(Steps& steps, const Node& node, std::size_t table) {
  Operand rows = steps.statistic(table);  // a table, though it is a floating initializer
  if (node.has(3)) {
    Shape shape = node.shape(3);
    shape.push_back(node.shape(table).back());
    rows = steps.add(Gather{0}, {rows, steps.input(3)}, std::move(shape));
  }
  Shape shape = steps.fact(rows).shape;
  if (shape.size() == 3) shape.insert(shape.begin() + 1, 1);
  return steps.reshape(rows, std::move(shape));
}

// The first (or every even) element of a pair times the cosine minus the second times the sine, and crosswise.
Result<Operand> turned(Steps& steps, Operand x, Operand cosines, Operand sines, bool pairs) {
  const Shape whole = steps.fact(x).shape;
  Shape half = whole, split = whole;
  half.back() /= 2;
  if (pairs) split.back() /= 2, split.push_back(2);
  const auto axis = static_cast<std::int64_t>(split.size()) - 1;
  const std::int64_t middle = split.back() / 2;
  x = steps.reshape(x, split);
  const auto part = [&](std::int64_t start) {
    Shape shape = split;
    shape.back() = middle;
    return steps.reshape(steps.add(Slice{{axis}, {start}, {start + middle}, {1}}, {x}, shape), half);
  };
  const Operand a = part(0), b = part(middle);
  SIBYL_TRY(const Operand ac, steps.binary(BinaryKind::mul, a, cosines));
  SIBYL_TRY(const Operand bs, steps.binary(BinaryKind::mul, b, sines));
  SIBYL_TRY(const Operand as, steps.binary(BinaryKind::mul, a, sines));
  SIBYL_TRY(const Operand bc, steps.binary(BinaryKind::mul, b, cosines));
  SIBYL_TRY(Operand first, steps.binary(BinaryKind::sub, ac, bs));
  SIBYL_TRY(Operand second, steps.binary(BinaryKind::add, as, bc));
  if (steps.fact(first).shape != half) return fail("its tables do not fit " + to_string(whole));
  if (pairs) half.push_back(1);
  return steps.reshape(steps.add(Concat{axis}, {steps.reshape(first, half), steps.reshape(second, half)}, split),
                       whole);
}

// Opset 23's, over all of a head's features or the first ones.
Result<Lowering> rotary_embedding(const Node& node) {
  Steps steps(node);
  SIBYL_TRY(Operand x, split_heads(steps, steps.input(0), node.integer("num_heads", 0)));
  const Shape shape = steps.fact(x).shape;
  const std::int64_t all = shape.back(), given = node.integer("rotary_embedding_dim", 0),
                     some = given == 0 ? all : given;
  if (some < 2 || some > all || some % 2 != 0) return fail(fmt::format("it turns {} of {} features", some, all));
  if (node.rank(1) < 1 || node.shape(1) != node.shape(2) || node.shape(1).back() != some / 2)
    return fail("its tables are " + to_string(node.shape(1)) + " and " + to_string(node.shape(2)));
  const Operand cosines = angles(steps, node, 1), sines = angles(steps, node, 2);
  const auto part = [&](std::int64_t start, std::int64_t end) {
    Shape narrow = shape;
    narrow.back() = end - start;
    return start == 0 && end == all ? x : steps.add(Slice{{3}, {start}, {end}, {1}}, {x}, std::move(narrow));
  };
  SIBYL_TRY(Operand y, turned(steps, part(0, some), cosines, sines, node.integer("interleaved", 0) != 0));
  if (some < all) y = steps.add(Concat{3}, {y, part(some, all)}, shape);
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
      {"RotaryEmbedding", rotary_embedding, 3},
      {"Attention", packed_attention, 2, "com.microsoft"},
      {"MultiHeadAttention", multi_head_attention, 3, "com.microsoft"},
  };
  return table;
}

}  // namespace sibyl::onnx_import
