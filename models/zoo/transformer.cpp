#include "models/zoo/transformer.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

// For Reshape: keep this axis as it is.
constexpr std::int64_t same = 0;

Value with_scalar(Builder& b, std::string_view op_type, const Value& x, double scalar) {
  return b.apply(op_type, {}, {x, b.scalar(scalar)}, x.shape);
}

Value binary(Builder& b, std::string_view op_type, const Value& x, const Value& y) {
  return b.apply(op_type, {}, {x, y}, x.shape);
}

Value transpose(Builder& b, const Value& x, const Ints& permutation) {
  Shape shape;
  for (const std::int64_t axis : permutation) shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  return b.apply("Transpose", {}, {x}, std::move(shape), {{"perm", permutation}});
}

// [B, S, E] -> [B, S, heads, E / heads], then permuted.
Value split_heads(Builder& b, const Value& x, std::int64_t heads, const Ints& permutation) {
  const std::int64_t width = x.shape[2] / heads;
  const Value split =
      b.apply("Reshape", {}, {x, b.ints({same, same, heads, width})}, {x.shape[0], x.shape[1], heads, width});
  return transpose(b, split, permutation);
}

Value matmul(Builder& b, const Value& x, const Value& y) {
  Shape shape = x.shape;
  shape.back() = y.shape.back();
  return b.apply("MatMul", {}, {x, y}, std::move(shape));
}

}  // namespace

Value layer_norm(Builder& b, const Value& x, const std::string& name, double epsilon) {
  const Shape width = {x.shape.back()};
  return b.apply("LayerNormalization", name,
                 {x, b.parameter(name + ".weight", width), b.parameter(name + ".bias", width)}, x.shape,
                 {{"axis", -1}, {"epsilon", epsilon}});
}

Value linear(Builder& b, const Value& x, const std::string& name, std::int64_t features) {
  Shape shape = x.shape;
  shape.back() = features;
  const Value product =
      b.apply("MatMul", name + ".MatMul", {x, b.parameter(name + ".weight", {x.shape.back(), features})}, shape);
  return b.apply("Add", name, {b.parameter(name + ".bias", {features}), product}, shape);
}

Value tied_projection(Builder& b, const Value& x, const Value& table) {
  return matmul(b, x, transpose(b, table, {1, 0}));
}

Value gelu_erf(Builder& b, const Value& x) {
  const Value scaled = with_scalar(b, "Div", x, std::numbers::sqrt2);
  const Value erf = b.apply("Erf", {}, {scaled}, x.shape);
  return with_scalar(b, "Mul", binary(b, "Mul", x, with_scalar(b, "Add", erf, 1.0)), 0.5);
}

Value gelu_tanh(Builder& b, const Value& x) {
  const Value half = with_scalar(b, "Mul", x, 0.5);
  const Value cubic = with_scalar(b, "Mul", with_scalar(b, "Pow", x, 3.0), 0.044715);
  const double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
  const Value inner = tanh(b, with_scalar(b, "Mul", add(b, x, cubic), factor));
  return binary(b, "Mul", half, with_scalar(b, "Add", inner, 1.0));
}

Value embedding(Builder& b, const Value& table, const Value& ids) {
  Shape shape = ids.shape;
  shape.push_back(table.shape[1]);
  return b.apply("Gather", {}, {table, ids}, std::move(shape), {{"axis", 0}});
}

Value sequence_length(Builder& b, const Value& ids) {
  const Value extents = b.apply("Shape", {}, {ids}, {2});
  return b.apply("Gather", {}, {extents, b.ints({1})}, {1}, {{"axis", 0}});
}

Value position_embedding(Builder& b, const Value& ids, const std::string& name, std::int64_t positions,
                         std::int64_t width) {
  const Value length = b.apply("Squeeze", {}, {sequence_length(b, ids), b.ints({0})}, {});
  const Value range =
      b.apply("Range", {}, {b.scalar(std::int64_t{0}), length, b.scalar(std::int64_t{1})}, {seq_extent});
  const Value row = b.apply("Unsqueeze", {}, {range, b.ints({0})}, {1, seq_extent});
  return embedding(b, b.parameter(name, {positions, width}), row);
}

Value causal_mask(Builder& b, const Value& ids) {
  const Value length = sequence_length(b, ids);
  const Value extents = b.apply("Concat", {}, {b.ints({1}), b.ints({1}), length, length}, {4}, {{"axis", 0}});
  const Shape shape = {1, 1, seq_extent, seq_extent};
  return b.apply("Trilu", {}, {b.all_true(extents, shape)}, shape, {{"upper", 0}});
}

Value attention(Builder& b, const Value& q, const Value& k, const Value& v, const AttentionOptions& options) {
  const double head_width = static_cast<double>(q.shape[2] / options.heads);
  const Value queries = split_heads(b, q, options.heads, {0, 2, 1, 3});
  const Value keys = split_heads(b, k, options.heads, {0, 2, 3, 1});
  const Value values = split_heads(b, v, options.heads, {0, 2, 1, 3});
  Value scores = with_scalar(b, "Div", matmul(b, queries, keys), std::sqrt(head_width));
  if (options.mask) {
    const Value lowest = b.scalar(static_cast<double>(std::numeric_limits<float>::lowest()));
    scores = b.apply("Where", {}, {*options.mask, scores, lowest}, scores.shape);
  }
  const Value softmax = b.apply("Softmax", {}, {scores}, scores.shape, {{"axis", -1}});
  const Value mixed = transpose(b, matmul(b, dropout(b, softmax, options.dropout), values), {0, 2, 1, 3});
  return b.apply("Reshape", {}, {mixed, b.ints({same, same, q.shape[2]})}, q.shape);
}

Value self_attention(Builder& b, const Value& x, const std::string& name, const AttentionOptions& options) {
  const std::int64_t width = x.shape[2];
  const Value joint = linear(b, x, name, 3 * width);
  const std::vector<Value> qkv =
      b.node("Split", {}, {joint, b.ints({width, width, width})}, {x.shape, x.shape, x.shape}, {{"axis", 2}});
  return attention(b, qkv[0], qkv[1], qkv[2], options);
}

}  // namespace sibyl::zoo
