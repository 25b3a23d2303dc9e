// Howard et al., "Searching for MobileNetV3" (2019), as torchvision has it.
#include <vector>

#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

constexpr double mobilenet_epsilon = 1e-3;
enum class Activation { none, relu, hard_swish };

struct MobileV3Block {
  std::int64_t kernel, hidden, channels, stride;
  Activation activation;
  bool squeezed = false;
};

constexpr auto re = Activation::relu, hs = Activation::hard_swish;
const std::vector<MobileV3Block> large_blocks = {
    {3, 16, 16, 1, re},         {3, 64, 24, 2, re},         {3, 72, 24, 1, re},         {5, 72, 40, 2, re, true},
    {5, 120, 40, 1, re, true},  {5, 120, 40, 1, re, true},  {3, 240, 80, 2, hs},        {3, 200, 80, 1, hs},
    {3, 184, 80, 1, hs},        {3, 184, 80, 1, hs},        {3, 480, 112, 1, hs, true}, {3, 672, 112, 1, hs, true},
    {5, 672, 160, 2, hs, true}, {5, 960, 160, 1, hs, true}, {5, 960, 160, 1, hs, true}};
const std::vector<MobileV3Block> small_blocks = {
    {3, 16, 16, 2, re, true},  {3, 72, 24, 2, re},        {3, 88, 24, 1, re},        {5, 96, 40, 2, hs, true},
    {5, 240, 40, 1, hs, true}, {5, 240, 40, 1, hs, true}, {5, 120, 48, 1, hs, true}, {5, 144, 48, 1, hs, true},
    {5, 288, 96, 2, hs, true}, {5, 576, 96, 1, hs, true}, {5, 576, 96, 1, hs, true}};

Value hard_swish(Builder& b, const Value& x) { return b.apply("HardSwish", {}, {x}, x.shape); }

Value conv_norm(Builder& b, const Value& x, const std::string& path, std::int64_t channels, std::int64_t kernel,
                std::int64_t stride, std::int64_t groups, Activation activation) {
  const std::int64_t pad = kernel / 2;
  const ConvOptions options = {
      .kernel = {kernel, kernel}, .stride = stride, .pad = {pad, pad}, .groups = groups, .bias = false};
  const Value y = batch_norm(b, conv(b, x, path + ".0", channels, options), path + ".1", mobilenet_epsilon);
  if (activation == Activation::none) return y;
  return activation == Activation::relu ? relu(b, y) : hard_swish(b, y);
}

// Modules are counted as torchvision counts them: a block that does not widen has no first convolution.
Value inverted_residual(Builder& b, const Value& x, const std::string& path, const MobileV3Block& block) {
  int module = 0;
  const auto next = [&] { return path + ".block." + std::to_string(module++); };
  Value y = x;
  if (block.hidden != x.shape[1]) y = conv_norm(b, y, next(), block.hidden, 1, 1, 1, block.activation);
  y = conv_norm(b, y, next(), block.hidden, block.kernel, block.stride, block.hidden, block.activation);
  if (block.squeezed)
    y = squeeze_excitation(b, y, next(), rounded_width(static_cast<double>(block.hidden / 4)), SqueezeActivation::relu,
                           Gate::hard_sigmoid);
  y = conv_norm(b, y, next(), block.channels, 1, 1, 1, Activation::none);
  return y.shape == x.shape ? add(b, x, y) : y;
}

}  // namespace

void mobilenet_v3(Builder& b, MobileNetV3 size) {
  const bool large = size == MobileNetV3::large;
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = conv_norm(b, x, "features.0", 16, 3, 2, 1, hs);
  int index = 1;
  for (const MobileV3Block& block : large ? large_blocks : small_blocks)
    x = inverted_residual(b, x, "features." + std::to_string(index++), block);
  x = conv_norm(b, x, "features." + std::to_string(index), 6 * x.shape[1], 1, 1, 1, hs);
  x = flatten(b, global_average_pool(b, x));
  x = dropout(b, hard_swish(b, fully_connected(b, x, "classifier.0", large ? 1280 : 1024)), 0.2);
  b.output(fully_connected(b, x, "classifier.3", 1000));
}

}  // namespace sibyl::zoo
