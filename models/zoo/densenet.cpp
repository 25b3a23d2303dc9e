// Huang et al., "Densely connected convolutional networks" (2016), DenseNet-BC as torchvision has it.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

Value norm_relu(Builder& b, const Value& x, const std::string& name) { return relu(b, batch_norm(b, x, name)); }

// What one layer adds: norm, 1 x 1 to four growths, norm, 3 x 3 to one. The first layer of a block joins one tensor,
// which PyTorch copies as it copies many.
Value dense_layer(Builder& b, const std::vector<Value>& features, const std::string& path, std::int64_t growth) {
  Value x = norm_relu(b, concat(b, features, 1), path + ".norm1");
  x = conv(b, x, path + ".conv1", 4 * growth, {.kernel = {1, 1}, .bias = false});
  x = norm_relu(b, x, path + ".norm2");
  return conv(b, x, path + ".conv2", growth, {.kernel = {3, 3}, .pad = {1, 1}, .bias = false});
}

Value dense_block(Builder& b, const Value& x, const std::string& path, std::int64_t layers, std::int64_t growth) {
  std::vector<Value> features = {x};
  for (std::int64_t i = 1; i <= layers; ++i)
    features.push_back(dense_layer(b, features, path + ".denselayer" + std::to_string(i), growth));
  return concat(b, features, 1);
}

Value transition(Builder& b, const Value& x, const std::string& path) {
  const Value y = norm_relu(b, x, path + ".norm");
  return average_pool(b, conv(b, y, path + ".conv", x.shape[1] / 2, {.kernel = {1, 1}, .bias = false}), {});
}

}  // namespace

void densenet(Builder& b, const DenseNetOptions& options) {
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = conv(b, x, "features.conv0", 2 * options.growth, {.kernel = {7, 7}, .stride = 2, .pad = {3, 3}, .bias = false});
  x = max_pool(b, norm_relu(b, x, "features.norm0"), {.kernel = 3, .stride = 2, .pad = 1});
  for (std::size_t i = 0; i < options.blocks.size(); ++i) {
    const std::string index = std::to_string(i + 1);
    x = dense_block(b, x, "features.denseblock" + index, options.blocks[i], options.growth);
    if (i + 1 < options.blocks.size()) x = transition(b, x, "features.transition" + index);
  }
  x = flatten(b, global_average_pool(b, norm_relu(b, x, "features.norm5")));
  b.output(fully_connected(b, x, "classifier", 1000));
}

}  // namespace sibyl::zoo
