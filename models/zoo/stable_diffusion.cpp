// Rombach et al., "High-resolution image synthesis with latent diffusion models" (2021): the U-Net of Stable Diffusion
// 1.5, which tells the noise in 64 x 64 latents of 512 x 512 images from the time step and 77 tokens of text.
#include <array>
#include <cmath>

#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr std::array<std::int64_t, 4> channels = {320, 640, 1280, 1280};  // of each level
constexpr std::int64_t time_width = 1280, text_width = 768, tokens = 77, heads = 8, groups = 32;
constexpr int blocks = 2;  // of a level on the way down; one more on the way up

std::string numbered(const std::string& path, std::size_t i) { return path + "." + std::to_string(i); }

Value conv3(Builder& b, const Value& x, const std::string& name, std::int64_t width, std::int64_t stride = 1) {
  return conv(b, x, name, width, {.kernel = {3, 3}, .stride = stride, .pad = {1, 1}});
}

// cos and sin of the step over 160 periods from 2 pi to 10,000 times that (Ho et al., 2020), then two layers.
Value time_embedding(Builder& b, const Value& step) {
  constexpr std::int64_t half = channels.front() / 2;
  const Value numbers =
      b.apply("Range", {}, {b.scalar(std::int64_t{0}), b.scalar(half), b.scalar(std::int64_t{1})}, {half});
  const Value exponents =
      b.apply("Mul", {}, {to_float(b, numbers), b.scalar(-std::log(10000.0) / static_cast<double>(half))}, {half});
  const Value frequencies = b.apply("Exp", {}, {exponents}, {half});
  const Value column = b.apply("Unsqueeze", {}, {to_float(b, step), b.ints({1})}, {batch_extent, 1});
  const Value angles = b.apply("Mul", {}, {column, frequencies}, {batch_extent, half});
  const Value cos = b.apply("Cos", {}, {angles}, angles.shape);
  const Value waves = concat(b, {cos, b.apply("Sin", {}, {angles}, angles.shape)}, 1);
  const Value wide = silu(b, fully_connected(b, waves, "time_embedding.linear_1", time_width));
  return fully_connected(b, wide, "time_embedding.linear_2", time_width);
}

// Two convolutions around what the time step adds to each channel.
Value residual_block(Builder& b, const Value& x, const Value& time, const std::string& path, std::int64_t width) {
  Value y = conv3(b, silu(b, group_norm(b, x, path + ".norm1", groups, 1e-5)), path + ".conv1", width);
  const Value shift = fully_connected(b, silu(b, time), path + ".time_emb_proj", width);
  y = add(b, y, b.apply("Unsqueeze", {}, {shift, b.ints({2, 3})}, {batch_extent, width, 1, 1}));
  y = conv3(b, silu(b, group_norm(b, y, path + ".norm2", groups, 1e-5)), path + ".conv2", width);
  return add(b, x.shape[1] == width ? x : conv(b, x, path + ".conv_shortcut", width, {.kernel = {1, 1}}), y);
}

// Queries of x look at `memory`: the image itself, or the text.
Value attend(Builder& b, const Value& x, const Value& memory, const std::string& path) {
  const std::int64_t width = x.shape.back();
  const Value q = linear_without_bias(b, x, path + ".to_q", width);
  const Value k = linear_without_bias(b, memory, path + ".to_k", width);
  const Value v = linear_without_bias(b, memory, path + ".to_v", width);
  return linear(b, attention(b, q, k, v, {.heads = heads}), path + ".to_out.0", width);
}

// Shazeer, 2020: half of the features are gates of the others.
Value gated_feed_forward(Builder& b, const Value& x, const std::string& path) {
  const std::int64_t width = x.shape.back(), inner = 4 * width;
  const Value both = linear(b, x, path + ".net.0.proj", 2 * inner);
  const Shape half = {x.shape[0], x.shape[1], inner};
  const std::vector<Value> parts = b.node("Split", {}, {both, b.ints({inner, inner})}, {half, half}, {{"axis", 2}});
  return linear(b, multiply(b, parts[0], gelu_erf(b, parts[1])), path + ".net.2", width);
}

// A block of a transformer over the pixels.
Value transformer_block(Builder& b, const Value& image, const Value& text, const std::string& path) {
  const std::int64_t width = image.shape[1], rows = image.shape[2], columns = image.shape[3];
  const Value in =
      conv(b, group_norm(b, image, path + ".norm", groups, 1e-6), path + ".proj_in", width, {.kernel = {1, 1}});
  const Value last = b.apply("Transpose", {}, {in}, {batch_extent, rows, columns, width}, {{"perm", Ints{0, 2, 3, 1}}});
  Value x = b.apply("Reshape", {}, {last, b.ints({0, rows * columns, width})}, {batch_extent, rows * columns, width});
  const std::string block = path + ".transformer_blocks.0";
  const Value own = layer_norm(b, x, block + ".norm1", 1e-5);
  x = add(b, x, attend(b, own, own, block + ".attn1"));
  x = add(b, x, attend(b, layer_norm(b, x, block + ".norm2", 1e-5), text, block + ".attn2"));
  x = add(b, x, gated_feed_forward(b, layer_norm(b, x, block + ".norm3", 1e-5), block + ".ff"));
  const Value square = b.apply("Reshape", {}, {x, b.ints({0, rows, columns, width})}, last.shape);
  const Value first = b.apply("Transpose", {}, {square}, image.shape, {{"perm", Ints{0, 3, 1, 2}}});
  return add(b, conv(b, first, path + ".proj_out", width, {.kernel = {1, 1}}), image);
}

// Residual blocks of a level, each before a block of a transformer where the level has them.
struct Level {
  Builder& b;
  const Value &time, &text;
  std::string path;
  std::int64_t width;
  bool attends;

  Value block(const Value& x, std::size_t i) const {
    const Value y = residual_block(b, x, time, numbered(path + ".resnets", i), width);
    return attends ? transformer_block(b, y, text, numbered(path + ".attentions", i)) : y;
  }
};

Value middle(Builder& b, const Value& x, const Value& time, const Value& text) {
  const std::int64_t width = channels.back();
  const Level level{b, time, text, "mid_block", width, true};
  return residual_block(b, level.block(x, 0), time, "mid_block.resnets.1", width);
}

}  // namespace

void stable_diffusion_unet(Builder& b) {
  const Value latents = b.input("sample", {batch_extent, 4, 64, 64});
  const Value time = time_embedding(b, b.input("timestep", {batch_extent}, DType::i64));
  const Value text = b.input("encoder_hidden_states", {batch_extent, tokens, text_width});
  Value x = conv3(b, latents, "conv_in", channels.front());
  std::vector<Value> skips = {x};
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const bool last = i + 1 == channels.size();
    const Level level{b, time, text, numbered("down_blocks", i), channels.at(i), !last};
    for (std::size_t block = 0; block < blocks; ++block) skips.push_back(x = level.block(x, block));
    if (!last) skips.push_back(x = conv3(b, x, level.path + ".downsamplers.0.conv", level.width, 2));
  }
  x = middle(b, x, time, text);
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const bool last = i + 1 == channels.size();
    const Level level{b, time, text, numbered("up_blocks", i), channels.at(channels.size() - 1 - i), i > 0};
    for (std::size_t block = 0; block <= blocks; ++block) {
      x = level.block(concat(b, {x, skips.back()}, 1), block);
      skips.pop_back();
    }
    if (!last) x = conv3(b, up_sample(b, x), level.path + ".upsamplers.0.conv", level.width);
  }
  b.output(conv3(b, silu(b, group_norm(b, x, "conv_norm_out", groups, 1e-5)), "conv_out", latents.shape[1]));
}

}  // namespace sibyl::zoo
