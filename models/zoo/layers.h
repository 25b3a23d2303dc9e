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

// Doubles the extents, with stride 2 on every axis. A kernel of 3 overlaps, and is padded so that extents double all
// the same.
Value up_convolution(Builder& b, const Value& x, const std::string& name, std::int64_t channels, bool bias,
                     std::int64_t kernel = 2);

// In training mode: normalises with the batch's statistics and writes new running ones.
Value batch_norm(Builder& b, const Value& x, const std::string& name, double epsilon = 1e-5);
// Without scale and shift of its own: ones and zeros that are not trained.
Value plain_batch_norm(Builder& b, const Value& x, const std::string& name, double epsilon = 1e-5);
// With a shift of its own alone: a scale of ones that is not trained.
Value fixed_scale_batch_norm(Builder& b, const Value& x, const std::string& name, double epsilon = 1e-5);
Value instance_norm(Builder& b, const Value& x, const std::string& name, double epsilon = 1e-5);
// Over `groups` of channels: as an instance-norm of the groups, then a scale and a shift for each channel.
Value group_norm(Builder& b, const Value& x, const std::string& name, std::int64_t groups, double epsilon);

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
Value prelu(Builder& b, const Value& x, const std::string& name);  // one slope a channel
Value sigmoid(Builder& b, const Value& x);
Value tanh(Builder& b, const Value& x);
Value add(Builder& b, const Value& x, const Value& y);
Value multiply(Builder& b, const Value& x, const Value& y);  // y broadcasts to x
Value dropout(Builder& b, const Value& x, double ratio);     // x itself where the ratio is 0
Value up_sample(Builder& b, const Value& x);                 // each pixel twice on each axis
Value concat(Builder& b, const std::vector<Value>& values, std::int64_t axis);
Value local_response_norm(Builder& b, const Value& x);             // AlexNet's: over 5 channels
Value center_crop(Builder& b, const Value& x, const Shape& like);  // to the spatial extents of `like`
Value flatten(Builder& b, const Value& x);                         // all but the batch

// x[N, K] -> [N, features]: Gemm with the weight as PyTorch stores it.
Value fully_connected(Builder& b, const Value& x, const std::string& name, std::int64_t features, bool bias = true);

enum class SqueezeActivation { relu, silu };
enum class Gate { sigmoid, hard_sigmoid };
// Hu et al., 2017: x times a gate for each channel, made from their means by two 1 x 1 convolutions with bias.
Value squeeze_excitation(Builder& b, const Value& x, const std::string& path, std::int64_t squeezed,
                         SqueezeActivation activation = SqueezeActivation::relu, Gate gate = Gate::sigmoid);

// Channels of the mobile networks: to a multiple of 8, and by no more than a tenth down.
std::int64_t rounded_width(double channels);

}  // namespace sibyl::zoo
