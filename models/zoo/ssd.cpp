// Liu et al., "SSD: single shot multibox detector" (2015), on images of 300 x 300 with a ResNet up to its third stage,
// which does not stride here: the detector of MLPerf Training (ResNet-34) and of NVIDIA's examples (ResNet-50), 81
// classes of COCO.
//
// The output is [N, 85, 8732, 1]: four coordinates and 81 scores of each default box. Sibyl's loss is cross-entropy
// over the 85, where training adds a smooth L1 of coordinates to a cross-entropy of scores with hard negatives: both
// read and write these 85 x 8732 numbers a few times.
#include <iterator>

#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

constexpr std::int64_t coordinates = 4, coco_classes = 81;

// 1 x 1 to fewer channels, then 3 x 3: halving the extents, or without padding.
Value extra_block(Builder& b, const Value& x, const std::string& path, std::int64_t inner, std::int64_t channels,
                  bool halves, bool normalized) {
  const auto part = [&](const Value& in, const std::string& index, std::int64_t out, ConvOptions options) {
    options.bias = !normalized;
    const Value y = conv(b, in, path + "." + index, out, options);
    return relu(b, normalized ? batch_norm(b, y, path + ".bn" + index) : y);
  };
  const Value y = part(x, "0", inner, {.kernel = {1, 1}});
  if (!halves) return part(y, "1", channels, {.kernel = {3, 3}});
  return part(y, "1", channels, {.kernel = {3, 3}, .stride = 2, .pad = {1, 1}});
}

// [N, boxes * each, H, W] -> [N, each, boxes * H * W]
Value head(Builder& b, const Value& x, const std::string& name, std::int64_t boxes, std::int64_t each) {
  const Value y = conv(b, x, name, boxes * each, {.kernel = {3, 3}, .pad = {1, 1}});
  return b.apply("Reshape", {}, {y, b.ints({0, each, -1})}, {y.shape[0], each, boxes * y.shape[2] * y.shape[3]});
}

}  // namespace

void ssd300(Builder& b, const SsdOptions& options) {
  const std::int64_t inner[] = {256, 256, 128, 128, 128}, channels[] = {512, 512, 256, 256, 256};
  const std::int64_t boxes[] = {4, 6, 6, 6, 4, 4};
  Value x = b.input("input", {batch_extent, 3, 300, 300});
  x = resnet_features(b, x, options.backbone, {1, 2, 1});
  std::vector<Value> features = {x};
  for (std::size_t i = 0; i < std::size(inner); ++i) {
    const std::string path = "additional_blocks." + std::to_string(i);
    x = extra_block(b, x, path, inner[i], channels[i], i < 3, options.normalized_extras);
    features.push_back(x);
  }
  std::vector<Value> where, what;
  for (std::size_t i = 0; i < features.size(); ++i) {
    where.push_back(head(b, features[i], "loc." + std::to_string(i), boxes[i], coordinates));
    what.push_back(head(b, features[i], "conf." + std::to_string(i), boxes[i], coco_classes));
  }
  const Value locations = concat(b, where, 2);
  const Value scores = concat(b, what, 2);
  const Value all = concat(b, {locations, scores}, 1);
  b.output(b.apply("Reshape", {}, {all, b.ints({0, 0, -1, 1})}, {all.shape[0], all.shape[1], all.shape[2], 1}));
}

}  // namespace sibyl::zoo
