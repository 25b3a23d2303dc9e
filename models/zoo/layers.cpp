#include "models/zoo/layers.h"

#include <algorithm>

#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr std::size_t first_spatial_axis = 2;

Value elementwise(Builder& b, std::string_view op_type, const std::vector<Value>& inputs,
                  const NodeAttributes& attributes = {}) {
  return b.apply(op_type, {}, inputs, inputs.front().shape, attributes);
}

// How often a window fits; with ceil_mode a last one may hang over the end, but must start inside the image or its
// left padding (PyTorch's rule).
std::int64_t windows(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t pad, bool ceil_mode) {
  const std::int64_t room = extent + 2 * pad - kernel;
  std::int64_t count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= extent + pad) --count;
  return count;
}

Value pool(Builder& b, std::string_view op_type, const Value& x, const PoolOptions& options,
           NodeAttributes attributes) {
  const std::size_t spatial = x.shape.size() - first_spatial_axis;
  Shape shape = x.shape;
  for (std::size_t i = first_spatial_axis; i < shape.size(); ++i)
    shape[i] = windows(shape[i], options.kernel, options.stride, options.pad, options.ceil_mode);
  attributes.push_back({"kernel_shape", Ints(spatial, options.kernel)});
  attributes.push_back({"strides", Ints(spatial, options.stride)});
  attributes.push_back({"pads", Ints(2 * spatial, options.pad)});
  attributes.push_back({"ceil_mode", std::int64_t{options.ceil_mode}});
  return b.apply(op_type, {}, {x}, std::move(shape), attributes);
}

Value normalized_by_batch(Builder& b, const Value& x, const std::string& name, const Value& scale, const Value& shift,
                          double epsilon) {
  const Shape channels = {x.shape[1]};
  const std::vector<Value> inputs = {x, scale, shift, b.parameter(name + ".running_mean", channels),
                                     b.parameter(name + ".running_var", channels)};
  // ONNX's momentum is the share of the old statistics: 1 - PyTorch's 0.1.
  return b
      .node("BatchNormalization", name, inputs, {x.shape, channels, channels},
            {{"epsilon", epsilon}, {"momentum", 0.9}, {"training_mode", 1}})
      .front();
}

}  // namespace

Value conv(Builder& b, const Value& x, const std::string& name, std::int64_t channels, const ConvOptions& options) {
  const std::size_t spatial = options.kernel.size();
  const Ints pad = options.pad.empty() ? Ints(spatial, 0) : options.pad;
  Shape weight = {channels, x.shape[1] / options.groups};
  Shape shape = {x.shape[0], channels};
  for (std::size_t i = 0; i < spatial; ++i) {
    weight.push_back(options.kernel[i]);
    shape.push_back(windows(x.shape[first_spatial_axis + i], options.kernel[i], options.stride, pad[i], false));
  }
  Ints pads = pad;
  pads.insert(pads.end(), pad.begin(), pad.end());
  std::vector<Value> inputs = {x, b.parameter(name + ".weight", weight)};
  if (options.bias) inputs.push_back(b.parameter(name + ".bias", {channels}));
  return b.apply("Conv", name, inputs, std::move(shape),
                 {{"dilations", Ints(spatial, 1)},
                  {"group", options.groups},
                  {"kernel_shape", options.kernel},
                  {"pads", pads},
                  {"strides", Ints(spatial, options.stride)}});
}

Value up_convolution(Builder& b, const Value& x, const std::string& name, std::int64_t channels, bool bias,
                     std::int64_t kernel) {
  const std::size_t spatial = x.shape.size() - first_spatial_axis;
  const std::int64_t pad = (kernel - 1) / 2;
  Shape weight = {x.shape[1], channels};
  Shape shape = {x.shape[0], channels};
  for (std::size_t i = 0; i < spatial; ++i) {
    weight.push_back(kernel);
    shape.push_back(2 * x.shape[first_spatial_axis + i]);
  }
  std::vector<Value> inputs = {x, b.parameter(name + ".weight", weight)};
  if (bias) inputs.push_back(b.parameter(name + ".bias", {channels}));
  NodeAttributes attributes = {{"dilations", Ints(spatial, 1)},
                               {"group", 1},
                               {"kernel_shape", Ints(spatial, kernel)},
                               {"pads", Ints(2 * spatial, pad)},
                               {"strides", Ints(spatial, 2)}};
  // (extent - 1) * 2 + kernel - 2 pad + output_padding = 2 extent
  if (const std::int64_t extra = 2 + 2 * pad - kernel; extra > 0)
    attributes.push_back({"output_padding", Ints(spatial, extra)});
  return b.apply("ConvTranspose", name, inputs, std::move(shape), attributes);
}

Value batch_norm(Builder& b, const Value& x, const std::string& name, double epsilon) {
  const Shape channels = {x.shape[1]};
  const Value scale = b.parameter(name + ".weight", channels);
  const Value shift = b.parameter(name + ".bias", channels);
  return normalized_by_batch(b, x, name, scale, shift, epsilon);
}

Value plain_batch_norm(Builder& b, const Value& x, const std::string& name, double epsilon) {
  const Value channels = b.ints({x.shape[1]});
  const Value ones = b.filled(channels, {x.shape[1]}, 1);
  const Value zeros = b.filled(channels, {x.shape[1]}, 0);
  return normalized_by_batch(b, x, name, ones, zeros, epsilon);
}

Value fixed_scale_batch_norm(Builder& b, const Value& x, const std::string& name, double epsilon) {
  const Value ones = b.filled(b.ints({x.shape[1]}), {x.shape[1]}, 1);
  const Value shift = b.parameter(name + ".bias", {x.shape[1]});
  return normalized_by_batch(b, x, name, ones, shift, epsilon);
}

Value instance_norm(Builder& b, const Value& x, const std::string& name, double epsilon) {
  const Shape channels = {x.shape[1]};
  return b.apply("InstanceNormalization", name,
                 {x, b.parameter(name + ".weight", channels), b.parameter(name + ".bias", channels)}, x.shape,
                 {{"epsilon", epsilon}});
}

Value group_norm(Builder& b, const Value& x, const std::string& name, std::int64_t groups, double epsilon) {
  Ints whole = {0};  // of Reshape: the batch as it is
  whole.insert(whole.end(), x.shape.begin() + 1, x.shape.end());
  const std::int64_t rest = element_count(Shape(x.shape.begin() + 1, x.shape.end())) / groups;
  const Value grouped = b.apply("Reshape", {}, {x, b.ints({0, groups, rest})}, {x.shape[0], groups, rest});
  const Value count = b.ints({groups}), ones = b.filled(count, {groups}, 1), zeros = b.filled(count, {groups}, 0);
  const Value normalized =
      b.apply("InstanceNormalization", {}, {grouped, ones, zeros}, grouped.shape, {{"epsilon", epsilon}});
  const Value y = b.apply("Reshape", {}, {normalized, b.ints(whole)}, x.shape);
  Shape channels(x.shape.size() - 1, 1);
  channels[0] = x.shape[1];
  const Value scaled = multiply(b, y, b.parameter(name + ".weight", channels));
  return b.apply("Add", name, {scaled, b.parameter(name + ".bias", channels)}, x.shape);
}

Value max_pool(Builder& b, const Value& x, const PoolOptions& options) { return pool(b, "MaxPool", x, options, {}); }

Value average_pool(Builder& b, const Value& x, const PoolOptions& options) {
  return pool(b, "AveragePool", x, options, {{"count_include_pad", 1}});
}

Value global_average_pool(Builder& b, const Value& x) {
  Shape shape(x.shape.size(), 1);
  shape[0] = x.shape[0];
  shape[1] = x.shape[1];
  return b.apply("GlobalAveragePool", {}, {x}, std::move(shape));
}

Value relu(Builder& b, const Value& x) { return elementwise(b, "Relu", {x}); }

Value relu6(Builder& b, const Value& x) { return elementwise(b, "Clip", {x, b.scalar(0.0), b.scalar(6.0)}); }

Value leaky_relu(Builder& b, const Value& x, double slope) {
  return elementwise(b, "LeakyRelu", {x}, {{"alpha", slope}});
}

Value prelu(Builder& b, const Value& x, const std::string& name) {
  Shape slope(x.shape.size() - 1, 1);
  slope[0] = x.shape[1];
  return elementwise(b, "PRelu", {x, b.parameter(name + ".weight", slope)});
}

Value sigmoid(Builder& b, const Value& x) { return elementwise(b, "Sigmoid", {x}); }

Value tanh(Builder& b, const Value& x) { return elementwise(b, "Tanh", {x}); }

Value add(Builder& b, const Value& x, const Value& y) { return elementwise(b, "Add", {x, y}); }

Value multiply(Builder& b, const Value& x, const Value& y) { return elementwise(b, "Mul", {x, y}); }

Value local_response_norm(Builder& b, const Value& x) {
  return elementwise(b, "LRN", {x}, {{"alpha", 1e-4}, {"beta", 0.75}, {"bias", 1.0}, {"size", 5}});
}

Value dropout(Builder& b, const Value& x, double ratio) {
  if (ratio == 0.0) return x;
  return elementwise(b, "Dropout", {x, b.scalar(ratio), b.boolean(true)});
}

Value up_sample(Builder& b, const Value& x) {
  Shape shape = x.shape;
  for (std::size_t i = first_spatial_axis; i < shape.size(); ++i) shape[i] *= 2;
  const Value extents = b.apply("Shape", {}, {x}, {static_cast<std::int64_t>(x.shape.size())});
  const Value batch = b.apply("Gather", {}, {extents, b.ints({0})}, {1}, {{"axis", 0}});
  const Value wanted = concat(b, {batch, b.ints(Ints(shape.begin() + 1, shape.end()))}, 0);
  const Value none;
  return b.apply("Resize", {}, {x, none, none, wanted}, shape);
}

Value concat(Builder& b, const std::vector<Value>& values, std::int64_t axis) {
  Shape shape = values.front().shape;
  const auto at = static_cast<std::size_t>(axis);
  for (std::size_t i = 1; i < values.size(); ++i) shape[at] += values[i].shape[at];
  return b.apply("Concat", {}, values, std::move(shape), {{"axis", axis}});
}

Value center_crop(Builder& b, const Value& x, const Shape& like) {
  Ints starts, ends, axes;
  Shape shape = x.shape;
  for (std::size_t i = first_spatial_axis; i < shape.size(); ++i) {
    const std::int64_t start = (shape[i] - like[i]) / 2;
    shape[i] = like[i];
    starts.push_back(start);
    ends.push_back(start + like[i]);
    axes.push_back(static_cast<std::int64_t>(i));
  }
  return b.apply("Slice", {}, {x, b.ints(starts), b.ints(ends), b.ints(axes)}, std::move(shape));
}

Value flatten(Builder& b, const Value& x) {
  const Shape rest(x.shape.begin() + 1, x.shape.end());
  return b.apply("Flatten", {}, {x}, {x.shape[0], element_count(rest)}, {{"axis", 1}});
}

Value fully_connected(Builder& b, const Value& x, const std::string& name, std::int64_t features, bool bias) {
  std::vector<Value> inputs = {x, b.parameter(name + ".weight", {features, x.shape[1]})};
  if (bias) inputs.push_back(b.parameter(name + ".bias", {features}));
  return b.apply("Gemm", name, inputs, {x.shape[0], features}, {{"alpha", 1.0}, {"beta", 1.0}, {"transB", 1}});
}

Value squeeze_excitation(Builder& b, const Value& x, const std::string& path, std::int64_t squeezed,
                         SqueezeActivation activation, Gate gate) {
  const ConvOptions options = {.kernel = {1, 1}};
  Value y = conv(b, global_average_pool(b, x), path + ".fc1", squeezed, options);
  y = activation == SqueezeActivation::silu ? silu(b, y) : relu(b, y);
  y = conv(b, y, path + ".fc2", x.shape[1], options);
  // max(0, min(1, x / 6 + 1 / 2)), MobileNetV3's
  y = gate == Gate::sigmoid ? sigmoid(b, y) : elementwise(b, "HardSigmoid", {y}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
  return multiply(b, x, y);
}

std::int64_t rounded_width(double channels) {
  const std::int64_t rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

}  // namespace sibyl::zoo
