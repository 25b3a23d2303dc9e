// Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks" (2018).
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

struct MobileStage {
  std::int64_t expansion, channels, repeats, stride;
};
constexpr MobileStage mobile_stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                         {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

// Convolution and batch-norm; names end in .0 and .1 as in the Sequential they form.
Value conv_norm(Builder& b, const Value& x, const std::string& name, std::int64_t channels, ConvOptions options) {
  options.bias = false;
  return batch_norm(b, conv(b, x, name + ".0", channels, options), name + ".1");
}

Value inverted_residual(Builder& b, const Value& x, const std::string& path, const MobileStage& stage,
                        std::int64_t stride) {
  const std::int64_t hidden = x.shape[1] * stage.expansion;
  Value y = x;
  if (stage.expansion != 1) y = relu6(b, conv_norm(b, y, path + ".expand", hidden, {.kernel = {1, 1}}));
  const ConvOptions depthwise = {.kernel = {3, 3}, .stride = stride, .pad = {1, 1}, .groups = hidden};
  y = relu6(b, conv_norm(b, y, path + ".depthwise", hidden, depthwise));
  y = conv_norm(b, y, path + ".project", stage.channels, {.kernel = {1, 1}});
  return y.shape == x.shape ? add(b, x, y) : y;
}

}  // namespace

void mobilenet_v2(Builder& b) {
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = relu6(b, conv_norm(b, x, "features.0", 32, {.kernel = {3, 3}, .stride = 2, .pad = {1, 1}}));
  int block = 1;
  for (const MobileStage& stage : mobile_stages)
    for (std::int64_t i = 0; i < stage.repeats; ++i)
      x = inverted_residual(b, x, "features." + std::to_string(block++), stage, i == 0 ? stage.stride : 1);
  x = relu6(b, conv_norm(b, x, "features.18", 1280, {.kernel = {1, 1}}));
  x = dropout(b, flatten(b, global_average_pool(b, x)), 0.2);
  b.output(fully_connected(b, x, "classifier.1", 1000));
}

}  // namespace sibyl::zoo
