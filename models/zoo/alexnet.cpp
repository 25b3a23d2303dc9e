// AlexNet in three spellings, all of one tower: torchvision's (Krizhevsky, "One weird trick for parallelizing
// convolutional neural networks", 2014), that of TensorFlow's tf_cnn_benchmarks, and that of MXNet's examples, which
// keeps the local response normalisation of Krizhevsky et al. (2012).
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

constexpr PoolOptions halve = {.kernel = 3, .stride = 2};

Value conv_relu(Builder& b, const Value& x, const std::string& name, std::int64_t channels, std::int64_t kernel) {
  return relu(b, conv(b, x, name, channels, {.kernel = {kernel, kernel}, .pad = {kernel / 2, kernel / 2}}));
}

Value three_convs(Builder& b, Value x, std::int64_t second, const char* const (&names)[3]) {
  x = conv_relu(b, x, names[0], 384, 3);
  x = conv_relu(b, x, names[1], second, 3);
  x = conv_relu(b, x, names[2], 256, 3);
  return max_pool(b, x, halve);
}

}  // namespace

void alexnet(Builder& b) {
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = relu(b, conv(b, x, "features.0", 64, {.kernel = {11, 11}, .stride = 4, .pad = {2, 2}}));
  x = max_pool(b, x, halve);
  x = max_pool(b, conv_relu(b, x, "features.3", 192, 5), halve);
  x = three_convs(b, x, 256, {"features.6", "features.8", "features.10"});
  // The adaptive pooling to 6 x 6, which 224 x 224 images already have here.
  x = average_pool(b, x, {.kernel = 1, .stride = 1});
  x = dropout(b, flatten(b, x), 0.5);
  x = relu(b, fully_connected(b, x, "classifier.1", 4096));
  x = dropout(b, x, 0.5);
  x = relu(b, fully_connected(b, x, "classifier.4", 4096));
  b.output(fully_connected(b, x, "classifier.6", 1000));
}

void alexnet_tf(Builder& b) {
  Value x = b.input("input", {batch_extent, 3, 227, 227});
  x = relu(b, conv(b, x, "conv0", 64, {.kernel = {11, 11}, .stride = 4}));
  x = max_pool(b, x, halve);
  x = max_pool(b, conv_relu(b, x, "conv1", 192, 5), halve);
  x = three_convs(b, x, 384, {"conv2", "conv3", "conv4"});
  x = dropout(b, relu(b, fully_connected(b, flatten(b, x), "affine0", 4096)), 0.5);
  x = dropout(b, relu(b, fully_connected(b, x, "affine1", 4096)), 0.5);
  b.output(fully_connected(b, x, "affine2", 1000));
}

void alexnet_mxnet(Builder& b) {
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = relu(b, conv(b, x, "conv1", 96, {.kernel = {11, 11}, .stride = 4}));
  x = local_response_norm(b, max_pool(b, x, halve));
  x = local_response_norm(b, max_pool(b, conv_relu(b, x, "conv2", 256, 5), halve));
  x = three_convs(b, x, 384, {"conv3", "conv4", "conv5"});
  x = dropout(b, relu(b, fully_connected(b, flatten(b, x), "fc1", 4096)), 0.5);
  x = dropout(b, relu(b, fully_connected(b, x, "fc2", 4096)), 0.5);
  b.output(fully_connected(b, x, "fc3", 1000));
}

}  // namespace sibyl::zoo
