// Dosovitskiy et al., "An image is worth 16x16 words" (2020); DeiT (Touvron et al., 2020) is the same at smaller
// widths.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr double vit_epsilon = 1e-6;

// [B, 3, 224, 224] -> [B, 1 + patches, width], the class token first.
Value tokens(Builder& b, const Value& image, const VitOptions& options) {
  const ConvOptions projection = {.kernel = {options.patch, options.patch}, .stride = options.patch};
  const Value patches = conv(b, image, "conv_proj", options.width, projection);
  const std::int64_t count = patches.shape[2] * patches.shape[3];
  const Value rows =
      b.apply("Reshape", {}, {patches, b.ints({0, options.width, -1})}, {batch_extent, options.width, count});
  const Value embedded =
      b.apply("Transpose", {}, {rows}, {batch_extent, count, options.width}, {{"perm", Ints{0, 2, 1}}});

  const Value extents = b.apply("Shape", {}, {image}, {4});
  const Value batch = b.apply("Gather", {}, {extents, b.ints({0})}, {1}, {{"axis", 0}});
  const Value wanted = b.apply("Concat", {}, {batch, b.ints({1}), b.ints({options.width})}, {3}, {{"axis", 0}});
  const Value class_token = b.parameter("class_token", {1, 1, options.width});
  const Value classes = b.apply("Expand", {}, {class_token, wanted}, {batch_extent, 1, options.width});
  return concat(b, {classes, embedded}, 1);
}

Value block(Builder& b, Value x, const std::string& path, const VitOptions& options) {
  const Value normed = layer_norm(b, x, path + ".ln_1", vit_epsilon);
  const Value mixed = self_attention(b, normed, path + ".self_attention.in_proj", {.heads = options.heads});
  x = add(b, x, linear(b, mixed, path + ".self_attention.out_proj", options.width));
  const Value wide = linear(b, layer_norm(b, x, path + ".ln_2", vit_epsilon), path + ".mlp.0", 4 * options.width);
  return add(b, x, linear(b, gelu_erf(b, wide), path + ".mlp.3", options.width));
}

}  // namespace

void vit(Builder& b, const VitOptions& options) {
  const Value image = b.input("input", {batch_extent, 3, 224, 224});
  Value x = tokens(b, image, options);
  x = add(b, x, b.parameter("encoder.pos_embedding", {1, x.shape[1], options.width}));
  for (std::int64_t i = 0; i < options.layers; ++i) x = block(b, x, "encoder.layers." + std::to_string(i), options);
  x = layer_norm(b, x, "encoder.ln", vit_epsilon);
  x = b.apply("Gather", {}, {x, b.scalar(std::int64_t{0})}, {batch_extent, options.width}, {{"axis", 1}});
  b.output(fully_connected(b, x, "heads.head", 1000));
}

}  // namespace sibyl::zoo
