// Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural networks" (2019), and "EfficientNetV2:
// smaller models and faster training" (2021). Stochastic depth is left out: in expectation it costs less than the
// network as it stands here.
#include <algorithm>
#include <cmath>
#include <vector>

#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr double efficientnet_epsilon = 1e-3;

struct EfficientStage {
  std::int64_t expansion, channels, repeats, stride, kernel;
  bool fused = false;  // expanded by the k x k convolution itself, which no gates follow
};
using Stages = std::vector<EfficientStage>;
const Stages b0_stages = {{1, 16, 1, 1, 3},  {6, 24, 2, 2, 3},  {6, 40, 2, 2, 5}, {6, 80, 3, 2, 3},
                          {6, 112, 3, 1, 5}, {6, 192, 4, 2, 5}, {6, 320, 1, 1, 3}};
const Stages v2_small_stages = {{1, 24, 2, 1, 3, true}, {4, 48, 4, 2, 3, true}, {4, 64, 4, 2, 3, true},
                                {4, 128, 6, 2, 3},      {6, 160, 9, 1, 3},      {6, 256, 15, 2, 3}};
const Stages v2_medium_stages = {{1, 24, 3, 1, 3, true}, {4, 48, 5, 2, 3, true}, {4, 80, 5, 2, 3, true},
                                 {4, 160, 7, 2, 3},      {6, 176, 14, 1, 3},     {6, 304, 18, 2, 3},
                                 {6, 512, 5, 1, 3}};
const Stages v2_large_stages = {{1, 32, 4, 1, 3, true}, {4, 64, 7, 2, 3, true}, {4, 96, 7, 2, 3, true},
                                {4, 192, 10, 2, 3},     {6, 224, 19, 1, 3},     {6, 384, 25, 2, 3},
                                {6, 640, 7, 1, 3}};

Value conv_norm(Builder& b, const Value& x, const std::string& path, std::int64_t channels, std::int64_t kernel,
                std::int64_t stride = 1, std::int64_t groups = 1) {
  const std::int64_t pad = kernel / 2;
  const ConvOptions options = {
      .kernel = {kernel, kernel}, .stride = stride, .pad = {pad, pad}, .groups = groups, .bias = false};
  return batch_norm(b, conv(b, x, path + ".conv", channels, options), path + ".bn", efficientnet_epsilon);
}

// Gates are squeezed from the expanded channels to a quarter of the block's own.
Value mobile_block(Builder& b, const Value& x, const std::string& path, const EfficientStage& stage,
                   std::int64_t stride) {
  const std::int64_t hidden = x.shape[1] * stage.expansion;
  Value y = x;
  if (stage.expansion != 1) y = silu(b, conv_norm(b, y, path + ".expand", hidden, 1));
  y = silu(b, conv_norm(b, y, path + ".depsep", hidden, stage.kernel, stride, hidden));
  y = squeeze_excitation(b, y, path + ".se", std::max<std::int64_t>(1, x.shape[1] / 4), SqueezeActivation::silu);
  y = conv_norm(b, y, path + ".proj", stage.channels, 1);
  return y.shape == x.shape ? add(b, x, y) : y;
}

Value fused_block(Builder& b, const Value& x, const std::string& path, const EfficientStage& stage,
                  std::int64_t stride) {
  const std::int64_t hidden = stage.expansion == 1 ? stage.channels : x.shape[1] * stage.expansion;
  Value y = silu(b, conv_norm(b, x, path + ".expand", hidden, stage.kernel, stride));
  if (stage.expansion != 1) y = conv_norm(b, y, path + ".proj", stage.channels, 1);
  return y.shape == x.shape ? add(b, x, y) : y;
}

struct Network {
  Stages stages;  // scaled
  std::int64_t stem, features, image;
  double dropout;
};

void write(Builder& b, const Network& network) {
  Value x = b.input("input", {batch_extent, 3, network.image, network.image});
  x = silu(b, conv_norm(b, x, "stem", network.stem, 3, 2));
  for (std::size_t s = 0; s < network.stages.size(); ++s) {
    const EfficientStage& stage = network.stages[s];
    for (std::int64_t i = 0; i < stage.repeats; ++i) {
      const std::string path = "layers." + std::to_string(s) + ".block" + std::to_string(i);
      const std::int64_t stride = i == 0 ? stage.stride : 1;
      x = stage.fused ? fused_block(b, x, path, stage, stride) : mobile_block(b, x, path, stage, stride);
    }
  }
  x = silu(b, conv_norm(b, x, "features", network.features, 1));
  x = dropout(b, flatten(b, global_average_pool(b, x)), network.dropout);
  b.output(fully_connected(b, x, "classifier.fc", 1000));
}

}  // namespace

void efficientnet(Builder& b, const EfficientNetOptions& options) {
  Stages stages = b0_stages;
  for (EfficientStage& stage : stages) {
    stage.channels = rounded_width(static_cast<double>(stage.channels) * options.width);
    stage.repeats = static_cast<std::int64_t>(std::ceil(static_cast<double>(stage.repeats) * options.depth));
  }
  write(b, {stages, rounded_width(32 * options.width), rounded_width(1280 * options.width), options.image,
            options.dropout});
}

void efficientnet_v2(Builder& b, EfficientNetV2 size) {
  switch (size) {
    case EfficientNetV2::s: return write(b, {v2_small_stages, 24, 1280, 300, 0.2});
    case EfficientNetV2::m: return write(b, {v2_medium_stages, 24, 1280, 384, 0.3});
    case EfficientNetV2::l: return write(b, {v2_large_stages, 32, 1280, 384, 0.4});
  }
}

}  // namespace sibyl::zoo
