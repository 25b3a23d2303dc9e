// Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural networks" (2019). Stochastic depth is
// left out: in expectation it costs less than the network as it stands here.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr double efficientnet_epsilon = 1e-3;

struct EfficientStage {
  std::int64_t expansion, channels, repeats, stride, kernel;
};
constexpr EfficientStage efficient_stages[] = {{1, 16, 1, 1, 3},  {6, 24, 2, 2, 3},  {6, 40, 2, 2, 5}, {6, 80, 3, 2, 3},
                                               {6, 112, 3, 1, 5}, {6, 192, 4, 2, 5}, {6, 320, 1, 1, 3}};

// To a multiple of 8, and by no more than a tenth down.
std::int64_t scaled_width(std::int64_t channels, double factor) {
  const double wanted = static_cast<double>(channels) * factor;
  const std::int64_t rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(wanted + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * wanted ? rounded + 8 : rounded;
}

Value conv_norm(Builder& b, const Value& x, const std::string& path, std::int64_t channels, std::int64_t kernel,
                std::int64_t stride = 1, std::int64_t groups = 1) {
  const std::int64_t pad = kernel / 2;
  const ConvOptions options = {
      .kernel = {kernel, kernel}, .stride = stride, .pad = {pad, pad}, .groups = groups, .bias = false};
  return batch_norm(b, conv(b, x, path + ".conv", channels, options), path + ".bn", efficientnet_epsilon);
}

// Gates are squeezed from the expanded channels to a quarter of the block's own.
Value mobile_block(Builder& b, const Value& x, const std::string& path, const EfficientStage& stage,
                   std::int64_t channels, std::int64_t stride) {
  const std::int64_t hidden = x.shape[1] * stage.expansion;
  Value y = x;
  if (stage.expansion != 1) y = silu(b, conv_norm(b, y, path + ".expand", hidden, 1));
  y = silu(b, conv_norm(b, y, path + ".depsep", hidden, stage.kernel, stride, hidden));
  y = squeeze_excitation(b, y, path + ".se", std::max<std::int64_t>(1, x.shape[1] / 4), SqueezeActivation::silu);
  y = conv_norm(b, y, path + ".proj", channels, 1);
  return y.shape == x.shape ? add(b, x, y) : y;
}

}  // namespace

void efficientnet(Builder& b, const EfficientNetOptions& options) {
  Value x = b.input("input", {batch_extent, 3, options.image, options.image});
  x = silu(b, conv_norm(b, x, "stem", scaled_width(32, options.width), 3, 2));
  for (std::size_t s = 0; s < std::size(efficient_stages); ++s) {
    const auto repeats =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(efficient_stages[s].repeats) * options.depth));
    for (std::int64_t i = 0; i < repeats; ++i) {
      const std::string path = "layers." + std::to_string(s) + ".block" + std::to_string(i);
      x = mobile_block(b, x, path, efficient_stages[s], scaled_width(efficient_stages[s].channels, options.width),
                       i == 0 ? efficient_stages[s].stride : 1);
    }
  }
  x = silu(b, conv_norm(b, x, "features", scaled_width(1280, options.width), 1));
  x = dropout(b, flatten(b, global_average_pool(b, x)), options.dropout);
  b.output(fully_connected(b, x, "classifier.fc", 1000));
}

}  // namespace sibyl::zoo
