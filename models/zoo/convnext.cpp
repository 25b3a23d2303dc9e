// Liu et al., "A ConvNet for the 2020s" (2022), as torchvision has it: norms and 1 x 1 convolutions are layer norms and
// linear layers on channels last. Stochastic depth is left out: in expectation it costs less than the network as it
// stands here.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr double convnext_epsilon = 1e-6;

Value to_channels_last(Builder& b, const Value& x) {
  return b.apply("Transpose", {}, {x}, {x.shape[0], x.shape[2], x.shape[3], x.shape[1]}, {{"perm", Ints{0, 2, 3, 1}}});
}

Value to_channels_first(Builder& b, const Value& x) {
  return b.apply("Transpose", {}, {x}, {x.shape[0], x.shape[3], x.shape[1], x.shape[2]}, {{"perm", Ints{0, 3, 1, 2}}});
}

Value channel_norm(Builder& b, const Value& x, const std::string& name) {
  return to_channels_first(b, layer_norm(b, to_channels_last(b, x), name, convnext_epsilon));
}

Value convnext_block(Builder& b, const Value& x, const std::string& path) {
  const std::int64_t width = x.shape[1];
  Value y = conv(b, x, path + ".block.0", width, {.kernel = {7, 7}, .pad = {3, 3}, .groups = width});
  y = layer_norm(b, to_channels_last(b, y), path + ".block.2", convnext_epsilon);
  y = gelu_erf(b, linear(b, y, path + ".block.3", 4 * width));
  y = to_channels_first(b, linear(b, y, path + ".block.5", width));
  return add(b, multiply(b, y, b.parameter(path + ".layer_scale", {width, 1, 1})), x);
}

}  // namespace

void convnext(Builder& b, const ConvNextOptions& options) {
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = channel_norm(b, conv(b, x, "features.0.0", options.width, {.kernel = {4, 4}, .stride = 4}), "features.0.1");
  for (std::size_t stage = 0; stage < options.blocks.size(); ++stage) {
    if (stage > 0) {
      const std::string path = "features." + std::to_string(2 * stage);
      x = conv(b, channel_norm(b, x, path + ".0"), path + ".1", 2 * x.shape[1], {.kernel = {2, 2}, .stride = 2});
    }
    for (std::int64_t i = 0; i < options.blocks[stage]; ++i)
      x = convnext_block(b, x, "features." + std::to_string(2 * stage + 1) + "." + std::to_string(i));
  }
  x = flatten(b, channel_norm(b, global_average_pool(b, x), "classifier.0"));
  b.output(fully_connected(b, x, "classifier.2", 1000));
}

}  // namespace sibyl::zoo
