// He et al., "Deep residual learning for image recognition" (2015); the bottleneck strides in its 3 x 3 convolution
// (v1.5). With groups: Xie et al., "Aggregated residual transformations for deep neural networks" (2016), ResNeXt.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

Value conv_norm(Builder& b, const Value& x, const std::string& path, const std::string& index, std::int64_t channels,
                std::int64_t kernel, std::int64_t stride, std::int64_t groups = 1) {
  const std::int64_t pad = kernel / 2;
  const ConvOptions options = {
      .kernel = {kernel, kernel}, .stride = stride, .pad = {pad, pad}, .groups = groups, .bias = false};
  return batch_norm(b, conv(b, x, path + "conv" + index, channels, options), path + "bn" + index);
}

Value shortcut(Builder& b, const Value& x, const std::string& path, const Shape& wanted, std::int64_t stride) {
  if (x.shape == wanted) return x;
  const ConvOptions options = {.kernel = {1, 1}, .stride = stride, .bias = false};
  return batch_norm(b, conv(b, x, path + "downsample.0", wanted[1], options), path + "downsample.1");
}

Value basic_block(Builder& b, const Value& x, const std::string& path, std::int64_t width, std::int64_t stride) {
  Value y = relu(b, conv_norm(b, x, path, "1", width, 3, stride));
  y = conv_norm(b, y, path, "2", width, 3, 1);
  return relu(b, add(b, y, shortcut(b, x, path, y.shape, stride)));
}

Value bottleneck_block(Builder& b, const Value& x, const std::string& path, const ResNetOptions& options,
                       std::int64_t width, std::int64_t stride) {
  const std::int64_t inner = width / 64 * options.width * options.groups;
  Value y = relu(b, conv_norm(b, x, path, "1", inner, 1, 1));
  y = relu(b, conv_norm(b, y, path, "2", inner, 3, stride, options.groups));
  y = conv_norm(b, y, path, "3", 4 * width, 1, 1);
  return relu(b, add(b, y, shortcut(b, x, path, y.shape, stride)));
}

}  // namespace

void resnet(Builder& b, const ResNetOptions& options) {
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = relu(b, conv_norm(b, x, "", "1", 64, 7, 2));
  x = max_pool(b, x, {.kernel = 3, .stride = 2, .pad = 1});
  for (std::size_t stage = 0; stage < options.blocks.size(); ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    for (std::int64_t i = 0; i < options.blocks[stage]; ++i) {
      const std::string path = "layer" + std::to_string(stage + 1) + "." + std::to_string(i) + ".";
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = options.bottleneck ? bottleneck_block(b, x, path, options, width, stride)
                             : basic_block(b, x, path, width, stride);
    }
  }
  b.output(fully_connected(b, flatten(b, global_average_pool(b, x)), "fc", 1000));
}

}  // namespace sibyl::zoo
