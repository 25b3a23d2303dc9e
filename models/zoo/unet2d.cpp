// Ronneberger et al., "U-Net: convolutional networks for biomedical image segmentation" (2015), as NVIDIA's TensorFlow
// examples train it: on 572 x 572 without padding (UNet_Medical), and narrower on 512 x 512 with padding
// (UNet_Industrial's TinyUNet, whose source states 1,824,945 parameters for an earlier arrangement of its upward path).
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

Value conv3(Builder& b, const Value& x, const std::string& name, std::int64_t channels, bool padded) {
  const std::int64_t pad = padded ? 1 : 0;
  return relu(b, conv(b, x, name, channels, {.kernel = {3, 3}, .pad = {pad, pad}}));
}

Value two_convs(Builder& b, const Value& x, const std::string& path, std::int64_t first, std::int64_t second,
                bool padded) {
  return conv3(b, conv3(b, x, path + ".0", first, padded), path + ".1", second, padded);
}

}  // namespace

// The transposed convolutions are 3 x 3, and have a ReLU.
void unet_medical(Builder& b) {
  Value x = b.input("input", {batch_extent, 1, 572, 572});
  std::vector<Value> skips;
  for (std::int64_t level = 0; level < 4; ++level) {
    const std::int64_t width = std::int64_t{64} << level;
    skips.push_back(two_convs(b, x, "down" + std::to_string(level), width, width, false));
    x = max_pool(b, skips.back(), {});
  }
  x = dropout(b, two_convs(b, x, "bottleneck", 1024, 1024, false), 0.5);
  for (std::int64_t level = 3; level >= 0; --level) {
    const std::int64_t width = std::int64_t{64} << level;
    const std::string path = "up" + std::to_string(level);
    x = relu(b, up_convolution(b, x, path + ".up", width, true, 3));
    x = concat(b, {x, center_crop(b, skips[static_cast<std::size_t>(level)], x.shape)}, 1);
    x = two_convs(b, x, path, width, width, false);
  }
  b.output(conv(b, x, "output", 2, {.kernel = {1, 1}}));
}

// On its way up a level halves its width before the transposed convolution. One score a pixel.
void unet_industrial_tiny(Builder& b) {
  const Ints widths = {32, 32, 64, 128};
  Value x = b.input("input", {batch_extent, 1, 512, 512});
  std::vector<Value> skips;
  for (std::size_t level = 0; level < widths.size(); ++level) {
    skips.push_back(two_convs(b, x, "down" + std::to_string(level), widths[level], widths[level], true));
    x = max_pool(b, skips.back(), {});
  }
  x = two_convs(b, x, "bottleneck", 256, 256, true);
  x = relu(b, up_convolution(b, x, "bottleneck.up", 128, true));
  for (std::size_t level = widths.size(); level-- > 1;) {
    const std::string path = "up" + std::to_string(level);
    x = two_convs(b, concat(b, {x, skips[level]}, 1), path, widths[level], widths[level] / 2, true);
    x = relu(b, up_convolution(b, x, path + ".up", widths[level] / 2, true));
  }
  x = two_convs(b, concat(b, {x, skips.front()}, 1), "output", 32, 32, true);
  b.output(conv(b, x, "output.2", 1, {.kernel = {1, 1}}));
}

}  // namespace sibyl::zoo
