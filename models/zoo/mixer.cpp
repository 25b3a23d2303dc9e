// Tolstikhin et al., "MLP-Mixer: an all-MLP architecture for vision" (2021), as timm has it: a perceptron over the
// patches of every channel, half as wide as the model, then one over the channels of every patch.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr double mixer_epsilon = 1e-6;

Value patches_swapped(Builder& b, const Value& x) {
  return b.apply("Transpose", {}, {x}, {x.shape[0], x.shape[2], x.shape[1]}, {{"perm", Ints{0, 2, 1}}});
}

Value perceptron(Builder& b, const Value& x, const std::string& path, std::int64_t hidden) {
  return linear(b, gelu_erf(b, linear(b, x, path + ".fc1", hidden)), path + ".fc2", x.shape[2]);
}

Value mixer_block(Builder& b, Value x, const std::string& path) {
  const std::int64_t width = x.shape[2];
  const Value patches = patches_swapped(b, layer_norm(b, x, path + ".norm1", mixer_epsilon));
  x = add(b, x, patches_swapped(b, perceptron(b, patches, path + ".mlp_tokens", width / 2)));
  return add(b, x, perceptron(b, layer_norm(b, x, path + ".norm2", mixer_epsilon), path + ".mlp_channels", 4 * width));
}

}  // namespace

void mixer(Builder& b, const MixerOptions& options) {
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = conv(b, x, "stem.proj", options.width, {.kernel = {options.patch, options.patch}, .stride = options.patch});
  const std::int64_t patches = x.shape[2] * x.shape[3];
  x = b.apply("Reshape", {}, {x, b.ints({0, options.width, -1})}, {batch_extent, options.width, patches});
  x = patches_swapped(b, x);
  for (std::int64_t i = 0; i < options.layers; ++i) x = mixer_block(b, x, "blocks." + std::to_string(i));
  x = layer_norm(b, x, "norm", mixer_epsilon);
  x = b.apply("ReduceMean", {}, {x}, {batch_extent, options.width}, {{"axes", Ints{1}}, {"keepdims", 0}});
  b.output(fully_connected(b, x, "head", 1000));
}

}  // namespace sibyl::zoo
