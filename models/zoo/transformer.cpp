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

// [B, kv heads, S, D] -> [B, heads, S, D]: each key or value head serves a group of queries.
Value repeat_heads(Builder& b, const Value& x, std::int64_t heads) {
  const std::int64_t repeats = heads / x.shape[1], width = x.shape[3];
  if (repeats == 1) return x;
  Shape grouped = {x.shape[0], x.shape[1], 1, x.shape[2], width};
  const Value single = b.apply("Unsqueeze", {}, {x, b.ints({2})}, grouped);
  grouped[2] = repeats;
  const Value expanded = b.apply("Expand", {}, {single, b.ints({1, 1, repeats, 1, 1})}, grouped);
  return b.apply("Reshape", {}, {expanded, b.ints({same, heads, -1, width})}, {x.shape[0], heads, x.shape[2], width});
}

Value matmul(Builder& b, const Value& x, const Value& y) {
  Shape shape = x.shape;
  shape.back() = y.shape.back();
  return b.apply("MatMul", {}, {x, y}, std::move(shape));
}

Value masked(Builder& b, const Value& scores, const AttentionOptions& options) {
  if (options.added_mask) return add(b, scores, *options.added_mask);
  if (!options.mask) return scores;
  const Value lowest = b.scalar(static_cast<double>(std::numeric_limits<float>::lowest()));
  return b.apply("Where", {}, {*options.mask, scores, lowest}, scores.shape);
}

}  // namespace

Value to_float(Builder& b, const Value& x) {
  constexpr std::int64_t f32 = 1;  // TensorProto.FLOAT
  return b.apply("Cast", {}, {x}, x.shape, {{"to", f32}});
}

Value to_integer(Builder& b, const Value& x) {
  constexpr std::int64_t i64 = 7;  // TensorProto.INT64
  return b.apply("Cast", {}, {x}, x.shape, {{"to", i64}});
}

Value layer_norm(Builder& b, const Value& x, const std::string& name, double epsilon) {
  const Shape width = {x.shape.back()};
  return b.apply("LayerNormalization", name,
                 {x, b.parameter(name + ".weight", width), b.parameter(name + ".bias", width)}, x.shape,
                 {{"axis", -1}, {"epsilon", epsilon}});
}

Value layer_norm_of_moments(Builder& b, const Value& x, const std::string& name, double epsilon) {
  Shape row = x.shape;
  row.back() = 1;
  const Shape width = {x.shape.back()};
  const Value mean = b.apply("ReduceMean", {}, {x}, row, {{"axes", Ints{-1}}});
  const Value d = binary(b, "Sub", x, mean);
  const Value variance = b.apply("ReduceMean", {}, {binary(b, "Mul", d, d)}, row, {{"axes", Ints{-1}}});
  const Value inverse = with_scalar(b, "Pow", with_scalar(b, "Add", variance, epsilon), -0.5);
  const Value scale = b.apply("Mul", {}, {inverse, b.parameter(name + ".weight", width)}, x.shape);
  const Value offset = binary(b, "Mul", scale, mean);
  const Value shift = b.apply("Sub", {}, {b.parameter(name + ".bias", width), offset}, x.shape);
  return b.apply("Add", name, {binary(b, "Mul", scale, x), shift}, x.shape);
}

Value rms_norm(Builder& b, const Value& x, const std::string& name, double epsilon) {
  Shape row = x.shape;
  row.back() = 1;
  const Value mean = b.apply("ReduceMean", {}, {with_scalar(b, "Pow", x, 2.0)}, row, {{"axes", Ints{-1}}});
  const Value root = b.apply("Sqrt", {}, {with_scalar(b, "Add", mean, epsilon)}, row);
  const Value inverse = b.apply("Div", {}, {b.scalar(1.0), root}, row);
  return b.apply("Mul", name, {b.parameter(name + ".weight", {x.shape.back()}), binary(b, "Mul", x, inverse)}, x.shape);
}

Value linear_without_bias(Builder& b, const Value& x, const std::string& name, std::int64_t features) {
  Shape shape = x.shape;
  shape.back() = features;
  return b.apply("MatMul", name, {x, b.parameter(name + ".weight", {x.shape.back(), features})}, std::move(shape));
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

Value silu(Builder& b, const Value& x) { return binary(b, "Mul", x, b.apply("Sigmoid", {}, {x}, x.shape)); }

Value embedding(Builder& b, const Value& table, const Value& ids) {
  Shape shape = ids.shape;
  shape.push_back(table.shape[1]);
  return b.apply("Gather", {}, {table, ids}, std::move(shape), {{"axis", 0}});
}

Value sequence_length(Builder& b, const Value& ids) {
  const Value extents = b.apply("Shape", {}, {ids}, {2});
  return b.apply("Gather", {}, {extents, b.ints({1})}, {1}, {{"axis", 0}});
}

Value position_ids(Builder& b, const Value& ids) {
  const Value length = b.apply("Squeeze", {}, {sequence_length(b, ids), b.ints({0})}, {});
  return b.apply("Range", {}, {b.scalar(std::int64_t{0}), length, b.scalar(std::int64_t{1})}, {ids.shape[1]});
}

Value position_embedding(Builder& b, const Value& ids, const std::string& name, std::int64_t positions,
                         std::int64_t width) {
  const Value row = b.apply("Unsqueeze", {}, {position_ids(b, ids), b.ints({0})}, {1, ids.shape[1]});
  return embedding(b, b.parameter(name, {positions, width}), row);
}

Value causal_mask(Builder& b, const Value& ids) {
  const Value length = sequence_length(b, ids);
  const Value extents = b.apply("Concat", {}, {b.ints({1}), b.ints({1}), length, length}, {4}, {{"axis", 0}});
  const Shape shape = {1, 1, ids.shape[1], ids.shape[1]};
  return b.apply("Trilu", {}, {b.filled(extents, shape, 1, DType::boolean)}, shape, {{"upper", 0}});
}

RotaryTables rotary_tables(Builder& b, const Value& ids, std::int64_t head_width, double base) {
  const std::int64_t half = head_width / 2;
  const Value evens = to_float(
      b, b.apply("Range", {}, {b.scalar(std::int64_t{0}), b.scalar(head_width), b.scalar(std::int64_t{2})}, {half}));
  const Value exponents = with_scalar(b, "Div", evens, static_cast<double>(head_width));
  const Value periods = b.apply("Pow", {}, {b.scalar(base), exponents}, {half});
  const Value positions = b.apply("Unsqueeze", {}, {to_float(b, position_ids(b, ids)), b.ints({1})}, {seq_extent, 1});
  const Value angles = b.apply("Div", {}, {positions, periods}, {seq_extent, half});
  const Value twice = concat(b, {angles, angles}, 1);
  return {b.apply("Cos", {}, {twice}, twice.shape), b.apply("Sin", {}, {twice}, twice.shape)};
}

Value rotate(Builder& b, const Value& x, const RotaryTables& tables) {
  const std::int64_t width = x.shape[3], half = width / 2;
  const auto part = [&](std::int64_t start, std::int64_t end) {
    const Shape shape = {x.shape[0], x.shape[1], x.shape[2], half};
    return b.apply("Slice", {}, {x, b.ints({start}), b.ints({end}), b.ints({3})}, shape);
  };
  const Value first = part(0, half), second = part(half, width);
  const Value turned = concat(b, {b.apply("Neg", {}, {second}, second.shape), first}, 3);
  const Value straight = binary(b, "Mul", x, tables.cos);
  return add(b, straight, binary(b, "Mul", turned, tables.sin));
}

Value attention(Builder& b, const Value& q, const Value& k, const Value& v, const AttentionOptions& options) {
  const std::int64_t kv_heads = options.kv_heads == 0 ? options.heads : options.kv_heads;
  const double head_width = static_cast<double>(q.shape[2] / options.heads);
  Value queries = split_heads(b, q, options.heads, {0, 2, 1, 3});
  if (options.norms) queries = rms_norm(b, queries, options.norms->queries, options.norms->epsilon);
  Value keys;
  if (options.rotary) {
    queries = rotate(b, queries, *options.rotary);
    keys = split_heads(b, k, kv_heads, {0, 2, 1, 3});
    if (options.norms) keys = rms_norm(b, keys, options.norms->keys, options.norms->epsilon);
    keys = rotate(b, keys, *options.rotary);
    keys = transpose(b, repeat_heads(b, keys, options.heads), {0, 1, 3, 2});
  } else {
    keys = split_heads(b, k, options.heads, {0, 2, 3, 1});
  }
  const Value values = repeat_heads(b, split_heads(b, v, kv_heads, {0, 2, 1, 3}), options.heads);
  Value scores = matmul(b, queries, keys);
  if (options.scaled && !options.fused_softmax) scores = with_scalar(b, "Div", scores, std::sqrt(head_width));
  if (!options.fused_softmax) scores = masked(b, scores, options);
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
