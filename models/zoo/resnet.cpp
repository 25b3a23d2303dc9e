// He et al., "Deep residual learning for image recognition" (2015); the bottleneck strides in its 3 x 3 convolution
// (v1.5) or, as in the paper, in its first. With groups: Xie et al., "Aggregated residual transformations for deep
// neural networks" (2016), ResNeXt. With squeeze: Hu et al., "Squeeze-and-excitation networks" (2017). Pre-activated:
// He et al., "Identity mappings in deep residual networks" (2016), as MXNet's examples have it.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

Value plain_conv(Builder& b, const Value& x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                 std::int64_t stride, std::int64_t groups = 1) {
  const std::int64_t pad = kernel / 2;
  return conv(b, x, name, channels,
              {.kernel = {kernel, kernel}, .stride = stride, .pad = {pad, pad}, .groups = groups, .bias = false});
}

Value conv_norm(Builder& b, const Value& x, const std::string& path, const std::string& index, std::int64_t channels,
                std::int64_t kernel, std::int64_t stride, std::int64_t groups = 1) {
  return batch_norm(b, plain_conv(b, x, path + "conv" + index, channels, kernel, stride, groups), path + "bn" + index);
}

Value shortcut(Builder& b, const Value& x, const std::string& path, const Shape& wanted, std::int64_t stride,
               bool normalized) {
  if (x.shape == wanted) return x;
  const Value y = plain_conv(b, x, path + "downsample.0", wanted[1], 1, stride);
  return normalized ? batch_norm(b, y, path + "downsample.1") : y;
}

Value basic_block(Builder& b, const Value& x, const std::string& path, const ResNetOptions& options, std::int64_t width,
                  std::int64_t stride) {
  Value y = relu(b, conv_norm(b, x, path, "1", width, 3, stride));
  y = conv_norm(b, y, path, "2", width, 3, 1);
  return relu(b, add(b, y, shortcut(b, x, path, y.shape, stride, options.normalized_shortcut)));
}

Value bottleneck_block(Builder& b, const Value& x, const std::string& path, const ResNetOptions& options,
                       std::int64_t width, std::int64_t stride) {
  const std::int64_t inner = width / 64 * options.width * options.groups;
  const std::int64_t first = options.stride_first ? stride : 1, second = options.stride_first ? 1 : stride;
  Value y = relu(b, conv_norm(b, x, path, "1", inner, 1, first));
  y = relu(b, conv_norm(b, y, path, "2", inner, 3, second, options.groups));
  y = conv_norm(b, y, path, "3", 4 * width, 1, 1);
  if (options.squeeze > 0) y = squeeze_excitation(b, y, path + "se_module", y.shape[1] / options.squeeze);
  return relu(b, add(b, y, shortcut(b, x, path, y.shape, stride, options.normalized_shortcut)));
}

// Batch-norm and ReLU come before each convolution, and the shortcut begins behind the first of them.
Value preactivated_block(Builder& b, const Value& x, const std::string& path, std::int64_t width, std::int64_t stride,
                         bool first) {
  const Value a = relu(b, batch_norm(b, x, path + "bn1", 2e-5));
  Value y = plain_conv(b, a, path + "conv1", width, 1, 1);
  y = plain_conv(b, relu(b, batch_norm(b, y, path + "bn2", 2e-5)), path + "conv2", width, 3, stride);
  y = plain_conv(b, relu(b, batch_norm(b, y, path + "bn3", 2e-5)), path + "conv3", 4 * width, 1, 1);
  return add(b, y, first ? plain_conv(b, a, path + "sc", 4 * width, 1, stride) : x);
}

Value block(Builder& b, const Value& x, const std::string& path, const ResNetOptions& options, std::int64_t width,
            std::int64_t stride, bool first) {
  if (options.preactivated) return preactivated_block(b, x, path, width, stride, first);
  return options.bottleneck ? bottleneck_block(b, x, path, options, width, stride)
                            : basic_block(b, x, path, options, width, stride);
}

}  // namespace

Value resnet_features(Builder& b, Value x, const ResNetOptions& options, const Ints& strides) {
  if (options.preactivated) x = fixed_scale_batch_norm(b, x, "bn_data", 2e-5);
  x = relu(b, conv_norm(b, x, "", "1", 64, 7, 2));
  x = max_pool(b, x, {.kernel = 3, .stride = 2, .pad = 1});
  for (std::size_t stage = 0; stage < strides.size(); ++stage)
    for (std::int64_t i = 0; i < options.blocks[stage]; ++i) {
      const std::string path = "layer" + std::to_string(stage + 1) + "." + std::to_string(i) + ".";
      x = block(b, x, path, options, std::int64_t{64} << stage, i == 0 ? strides[stage] : 1, i == 0);
    }
  return options.preactivated ? relu(b, batch_norm(b, x, "bn_last", 2e-5)) : x;
}

void resnet(Builder& b, const ResNetOptions& options) {
  const Value x = b.input("input", {batch_extent, 3, 224, 224});
  const Value y = resnet_features(b, x, options, {1, 2, 2, 2});
  b.output(fully_connected(b, flatten(b, global_average_pool(b, y)), "fc", 1000));
}

}  // namespace sibyl::zoo
