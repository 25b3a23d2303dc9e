// The layers of convolutional networks, as torch.onnx writes them for training.
//
// Images are N C (D) H W. `name` is the module's path in PyTorch ("layer1.0.conv1"): weights are NAME.weight and so on.
// Every layer returns its result; an empty-named elementwise layer gets a number.
#pragma once

#include <string>
#include <vector>

#include "models/zoo/builder.h"

namespace sibyl::zoo {

struct ConvOptions {
  Ints kernel;
  std::int64_t stride = 1;
  Ints pad = {};  // per axis, both sides; empty: none
  std::int64_t groups = 1;
  bool bias = true;
};
Value conv(Builder& b, const Value& x, const std::string& name, std::int64_t channels, const ConvOptions& options);

// Doubles the extents: the kernel and stride are 2 on every axis.
Value up_convolution(Builder& b, const Value& x, const std::string& name, std::int64_t channels, bool bias);

// In training mode: normalises with the batch's statistics and writes new running ones.
Value batch_norm(Builder& b, const Value& x, const std::string& name, double epsilon = 1e-5);
// Without scale and shift of its own: ones and zeros that are not trained.
Value plain_batch_norm(Builder& b, const Value& x, const std::string& name, double epsilon = 1e-5);
Value instance_norm(Builder& b, const Value& x, const std::string& name, double epsilon = 1e-5);

struct PoolOptions {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t pad = 0;
  bool ceil_mode = false;
};
Value max_pool(Builder& b, const Value& x, const PoolOptions& options);
Value average_pool(Builder& b, const Value& x, const PoolOptions& options);  // padding counts, as PyTorch's default
Value global_average_pool(Builder& b, const Value& x);

Value relu(Builder& b, const Value& x);
Value relu6(Builder& b, const Value& x);
Value leaky_relu(Builder& b, const Value& x, double slope);
Value tanh(Builder& b, const Value& x);
Value add(Builder& b, const Value& x, const Value& y);
Value dropout(Builder& b, const Value& x, double ratio);  // x itself where the ratio is 0
Value concat(Builder& b, const std::vector<Value>& values, std::int64_t axis);
Value center_crop(Builder& b, const Value& x, const Shape& like);  // to the spatial extents of `like`
Value flatten(Builder& b, const Value& x);                         // all but the batch

// x[N, K] -> [N, features]: Gemm with the weight as PyTorch stores it.
Value fully_connected(Builder& b, const Value& x, const std::string& name, std::int64_t features);

}  // namespace sibyl::zoo
