// Deng et al., "ArcFace: additive angular margin loss for deep face recognition" (2018): the networks of InsightFace on
// faces of 112 x 112, an embedding of 512, and a classifier of as many rows as the data has people. ArcFace normalises
// embeddings and rows and adds a margin; here the classifier is a plain matrix product, which is all but a few passes
// over it.
#include <iterator>

#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

constexpr std::int64_t embedding_width = 512;

Value plain_conv(Builder& b, const Value& x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                 std::int64_t stride, std::int64_t groups = 1) {
  const std::int64_t pad = kernel / 2;
  return conv(b, x, name, channels,
              {.kernel = {kernel, kernel}, .stride = stride, .pad = {pad, pad}, .groups = groups, .bias = false});
}

Value input(Builder& b) { return b.input("input", {batch_extent, 3, 112, 112}); }

void classify(Builder& b, const Value& x, std::int64_t classes) {
  const Value features = fully_connected(b, flatten(b, x), "pre_fc1", embedding_width);
  b.output(fully_connected(b, fixed_scale_batch_norm(b, features, "fc1", 2e-5), "fc7", classes, false));
}

// "Improved" residual unit: batch-norm first, the stride in the second convolution.
Value face_unit(Builder& b, const Value& x, const std::string& path, std::int64_t width, std::int64_t stride) {
  constexpr double epsilon = 2e-5;
  Value y = plain_conv(b, batch_norm(b, x, path + ".bn1", epsilon), path + ".conv1", width, 3, 1);
  y = prelu(b, batch_norm(b, y, path + ".bn2", epsilon), path + ".relu1");
  y = batch_norm(b, plain_conv(b, y, path + ".conv2", width, 3, stride), path + ".bn3", epsilon);
  if (stride == 1) return add(b, y, x);
  const Value shortcut = plain_conv(b, x, path + ".downsample.0", width, 1, stride);
  return add(b, y, batch_norm(b, shortcut, path + ".downsample.1", epsilon));
}

Value conv_norm(Builder& b, const Value& x, const std::string& path, std::int64_t channels, std::int64_t kernel,
                std::int64_t stride, std::int64_t groups) {
  return batch_norm(b, plain_conv(b, x, path + ".conv2d", channels, kernel, stride, groups), path + ".bn", 1e-3);
}

Value conv_norm_prelu(Builder& b, const Value& x, const std::string& path, std::int64_t channels, std::int64_t kernel,
                      std::int64_t stride, std::int64_t groups = 1) {
  return prelu(b, conv_norm(b, x, path, channels, kernel, stride, groups), path + ".relu");
}

// Wider by a 1 x 1 convolution, 3 x 3 on each channel, narrower again.
Value separable_unit(Builder& b, const Value& x, const std::string& path, std::int64_t hidden, std::int64_t channels,
                     std::int64_t stride) {
  Value y = conv_norm_prelu(b, x, path + ".sep", hidden, 1, 1);
  y = conv_norm_prelu(b, y, path + ".dw", hidden, 3, stride, hidden);
  return conv_norm(b, y, path + ".proj", channels, 1, 1, 1);
}

Value separable_stage(Builder& b, Value x, const std::string& path, std::int64_t units, std::int64_t hidden) {
  for (std::int64_t i = 0; i < units; ++i) {
    const Value y = separable_unit(b, x, path + "." + std::to_string(i), hidden, x.shape[1], 1);
    x = add(b, y, x);
  }
  return x;
}

}  // namespace

void insightface_r100(Builder& b, std::int64_t classes) {
  constexpr std::int64_t units[] = {3, 13, 30, 3};
  Value x = batch_norm(b, plain_conv(b, input(b), "conv1", 64, 3, 1), "bn1", 2e-5);
  x = prelu(b, x, "relu0");
  for (std::size_t stage = 0; stage < std::size(units); ++stage)
    for (std::int64_t i = 0; i < units[stage]; ++i) {
      const std::string path = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      x = face_unit(b, x, path, std::int64_t{64} << stage, i == 0 ? 2 : 1);
    }
  classify(b, dropout(b, batch_norm(b, x, "bn2", 2e-5), 0.4), classes);
}

// Chen et al., "MobileFaceNets" (2018), in InsightFace's arrangement Y1.
void insightface_y1(Builder& b, std::int64_t classes) {
  Value x = conv_norm_prelu(b, input(b), "conv_1", 64, 3, 2);
  x = conv_norm_prelu(b, x, "conv_2_dw", 64, 3, 1, 64);
  x = separable_stage(b, separable_unit(b, x, "dconv_23", 128, 64, 2), "res_3", 4, 128);
  x = separable_stage(b, separable_unit(b, x, "dconv_34", 256, 128, 2), "res_4", 6, 256);
  x = separable_stage(b, separable_unit(b, x, "dconv_45", 512, 128, 2), "res_5", 2, 256);
  x = conv_norm_prelu(b, x, "conv_6sep", 512, 1, 1);
  x = conv(b, x, "conv_6dw7_7.conv2d", 512, {.kernel = {7, 7}, .groups = 512, .bias = false});
  classify(b, batch_norm(b, x, "conv_6dw7_7.bn", 1e-3), classes);
}

}  // namespace sibyl::zoo
