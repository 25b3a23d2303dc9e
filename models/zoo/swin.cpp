// Liu et al., "Swin transformer: hierarchical vision transformer using shifted windows" (2021), as torchvision has it
// and torch.onnx writes it: windows join the batch, so that attention sees [batch windows, tokens of a window, width].
// Stochastic depth is left out: in expectation it costs less than the network as it stands here.
#include <cmath>

#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr double swin_epsilon = 1e-5;
constexpr std::int64_t window = 7, window_tokens = window * window;
constexpr std::int64_t of_all_windows = batch_extent;  // batch times windows, which shapes here cannot say

Value reshape(Builder& b, const Value& x, const Ints& wanted, Shape shape) {
  return b.apply("Reshape", {}, {x, b.ints(wanted)}, std::move(shape));
}

Value permuted(Builder& b, const Value& x, const Ints& permutation) {
  Shape shape;
  for (const std::int64_t axis : permutation) shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  return b.apply("Transpose", {}, {x}, std::move(shape), {{"perm", permutation}});
}

Value slice(Builder& b, const Value& x, std::int64_t axis, std::int64_t start, std::int64_t end, std::int64_t step) {
  Shape shape = x.shape;
  shape[static_cast<std::size_t>(axis)] = (end - start + step - 1) / step;
  return b.apply("Slice", {}, {x, b.ints({start}), b.ints({end}), b.ints({axis}), b.ints({step})}, std::move(shape));
}

// The last `shift` rows and columns come first; torch.roll by so many of [B, H, W, C].
Value roll(Builder& b, Value x, std::int64_t shift) {
  for (const std::int64_t axis : {1, 2}) {
    const std::int64_t extent = x.shape[static_cast<std::size_t>(axis)], from = (extent - shift) % extent;
    const Value end = slice(b, x, axis, from, extent, 1), begin = slice(b, x, axis, 0, from, 1);
    x = concat(b, {end, begin}, axis);
  }
  return x;
}

// [heads, window_tokens, window_tokens]: a row of the table for each pair of tokens, by how far apart they lie.
Value position_bias(Builder& b, const std::string& path, std::int64_t heads) {
  constexpr std::int64_t span = 2 * window - 1;
  Ints rows;
  for (std::int64_t i = 0; i < window_tokens; ++i)
    for (std::int64_t j = 0; j < window_tokens; ++j)
      rows.push_back((i / window - j / window + window - 1) * span + i % window - j % window + window - 1);
  const Value table = b.parameter(path + ".relative_position_bias_table", {span * span, heads});
  const Value picked =
      b.apply("Gather", {}, {table, b.ints(rows)}, {window_tokens * window_tokens, heads}, {{"axis", 0}});
  return permuted(b, reshape(b, picked, {window_tokens, window_tokens, heads}, {window_tokens, window_tokens, heads}),
                  {2, 0, 1});
}

// [windows, 1, window_tokens, window_tokens]: -100 where two tokens of a shifted window come from apart.
Value shift_mask(Builder& b, std::int64_t extent, std::int64_t shift) {
  const auto band = [&](std::int64_t at) { return at < extent - window ? 0 : at < extent - shift ? 1 : 2; };
  const std::int64_t across = extent / window, windows = across * across;
  Ints regions;
  for (std::int64_t w = 0; w < windows; ++w)
    for (std::int64_t t = 0; t < window_tokens; ++t)
      regions.push_back(3 * band(w / across * window + t / window) + band(w % across * window + t % window));
  const Value flat = b.ints(regions);
  const Value columns = reshape(b, flat, {windows, 1, 1, window_tokens}, {windows, 1, 1, window_tokens});
  const Value rows = reshape(b, flat, {windows, 1, window_tokens, 1}, {windows, 1, window_tokens, 1});
  const Value together = b.apply("Equal", {}, {rows, columns}, {windows, 1, window_tokens, window_tokens});
  return b.apply("Where", {}, {together, b.scalar(0.0), b.scalar(-100.0)}, together.shape);
}

Value shift_masked(Builder& b, const Value& scores, std::int64_t heads, std::int64_t extent, std::int64_t shift) {
  const std::int64_t windows = extent * extent / window_tokens;
  Value y = reshape(b, scores, {-1, windows, heads, window_tokens, window_tokens},
                    {batch_extent, windows, heads, window_tokens, window_tokens});
  y = add(b, y, shift_mask(b, extent, shift));
  return reshape(b, y, {-1, heads, window_tokens, window_tokens}, scores.shape);
}

// x[B windows, window_tokens, width]
Value window_attention(Builder& b, const Value& x, const std::string& path, std::int64_t heads, std::int64_t extent,
                       std::int64_t shift) {
  const std::int64_t width = x.shape[2], head = width / heads;
  const Value joint = linear(b, x, path + ".qkv", 3 * width);
  const Value parts = permuted(
      b, reshape(b, joint, {-1, window_tokens, 3, heads, head}, {of_all_windows, window_tokens, 3, heads, head}),
      {2, 0, 3, 1, 4});
  const auto part = [&](std::int64_t i) {
    return b.apply("Gather", {}, {parts, b.scalar(i)}, {of_all_windows, heads, window_tokens, head}, {{"axis", 0}});
  };
  Value q = part(0);
  const Value k = part(1), v = part(2);
  q = b.apply("Mul", {}, {q, b.scalar(1.0 / std::sqrt(static_cast<double>(head)))}, q.shape);
  const Shape square = {of_all_windows, heads, window_tokens, window_tokens};
  Value scores = b.apply("MatMul", {}, {q, permuted(b, k, {0, 1, 3, 2})}, square);
  scores = add(b, scores, position_bias(b, path, heads));
  if (shift > 0) scores = shift_masked(b, scores, heads, extent, shift);
  const Value softmax = b.apply("Softmax", {}, {scores}, square, {{"axis", -1}});
  const Value mixed = permuted(b, b.apply("MatMul", {}, {softmax, v}, q.shape), {0, 2, 1, 3});
  return linear(b, reshape(b, mixed, {-1, window_tokens, width}, x.shape), path + ".proj", width);
}

// Of x[B, H, W, C], in windows that begin `shift` rows and columns later.
Value shifted_windows(Builder& b, Value x, const std::string& path, std::int64_t heads, std::int64_t shift) {
  const std::int64_t extent = x.shape[1], width = x.shape[3], across = extent / window;
  const Shape image = x.shape, parted = {batch_extent, across, window, across, window, width},
              turned = {batch_extent, across, across, window, window, width};
  if (shift > 0) x = roll(b, x, extent - shift);
  x = permuted(b, reshape(b, x, {-1, across, window, across, window, width}, parted), {0, 1, 3, 2, 4, 5});
  x = reshape(b, x, {-1, window_tokens, width}, {of_all_windows, window_tokens, width});
  x = window_attention(b, x, path, heads, extent, shift);
  x = permuted(b, reshape(b, x, {-1, across, across, window, window, width}, turned), {0, 1, 3, 2, 4, 5});
  x = reshape(b, x, {-1, extent, extent, width}, image);
  return shift > 0 ? roll(b, x, shift) : x;
}

Value swin_block(Builder& b, Value x, const std::string& path, std::int64_t heads, std::int64_t shift) {
  const Value normed = layer_norm(b, x, path + ".norm1", swin_epsilon);
  x = add(b, x, shifted_windows(b, normed, path + ".attn", heads, shift));
  const Value wide = linear(b, layer_norm(b, x, path + ".norm2", swin_epsilon), path + ".mlp.0", 4 * x.shape[3]);
  return add(b, x, linear(b, gelu_erf(b, wide), path + ".mlp.3", x.shape[3]));
}

// Every 2 x 2 pixels become one of four times the width, then of two.
Value merge(Builder& b, const Value& x, const std::string& path) {
  std::vector<Value> corners;
  for (const std::int64_t column : {0, 1})
    for (const std::int64_t row : {0, 1})
      corners.push_back(slice(b, slice(b, x, 1, row, x.shape[1], 2), 2, column, x.shape[2], 2));
  const Value joined = layer_norm(b, concat(b, corners, 3), path + ".norm", swin_epsilon);
  return linear_without_bias(b, joined, path + ".reduction", 2 * x.shape[3]);
}

}  // namespace

void swin(Builder& b, const SwinOptions& options) {
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = conv(b, x, "features.0.0", options.width, {.kernel = {4, 4}, .stride = 4});
  x = layer_norm(b, permuted(b, x, {0, 2, 3, 1}), "features.0.2", swin_epsilon);
  for (std::size_t stage = 0; stage < options.blocks.size(); ++stage) {
    if (stage > 0) x = merge(b, x, "features." + std::to_string(2 * stage));
    for (std::int64_t i = 0; i < options.blocks[stage]; ++i) {
      const std::string path = "features." + std::to_string(2 * stage + 1) + "." + std::to_string(i);
      const bool shifted = i % 2 == 1 && x.shape[1] > window;
      x = swin_block(b, x, path, x.shape[3] / 32, shifted ? window / 2 : 0);
    }
  }
  x = permuted(b, layer_norm(b, x, "norm", swin_epsilon), {0, 3, 1, 2});
  b.output(fully_connected(b, flatten(b, global_average_pool(b, x)), "head", 1000));
}

}  // namespace sibyl::zoo
