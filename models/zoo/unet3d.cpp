// Two U-Nets of volumes.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

const Ints cube = {3, 3, 3};

// The paper's: unpadded, with a bias; its batch-norm (Caffe's) has neither scale nor shift.
Value paper_conv(Builder& b, const Value& x, const std::string& name, std::int64_t channels) {
  return relu(b, plain_batch_norm(b, conv(b, x, name, channels, {.kernel = cube}), name + ".bn"));
}

Value mlperf_conv(Builder& b, const Value& x, const std::string& path, std::int64_t channels, std::int64_t stride = 1) {
  const ConvOptions options = {.kernel = cube, .stride = stride, .pad = {1, 1, 1}, .bias = false};
  return relu(b, instance_norm(b, conv(b, x, path + ".0", channels, options), path + ".1"));
}

Value mlperf_block(Builder& b, const Value& x, const std::string& path, std::int64_t channels, std::int64_t stride) {
  return mlperf_conv(b, mlperf_conv(b, x, path + ".conv1", channels, stride), path + ".conv2", channels);
}

}  // namespace

// Cicek et al., "3D U-Net: learning dense volumetric segmentation from sparse annotation" (2016): tiles of 132 x 132 x
// 116 voxels in 3 channels, to 3 classes of 44 x 44 x 28.
void unet3d(Builder& b) {
  const auto name = [](const char* part, std::int64_t level) { return part + std::to_string(level); };
  Value x = b.input("input", {batch_extent, 3, 116, 132, 132});
  std::vector<Value> skips;
  for (std::int64_t level = 0; level < 4; ++level) {
    if (level > 0) x = max_pool(b, x, {});
    x = paper_conv(b, x, name("analysis", level) + ".conv1", std::int64_t{32} << level);
    x = paper_conv(b, x, name("analysis", level) + ".conv2", std::int64_t{64} << level);
    skips.push_back(x);
  }
  for (std::int64_t level = 2; level >= 0; --level) {
    const std::string path = name("synthesis", level);
    x = up_convolution(b, x, path + ".up", x.shape[1], false);
    x = concat(b, {center_crop(b, skips[static_cast<std::size_t>(level)], x.shape), x}, 1);
    x = paper_conv(b, x, path + ".conv1", std::int64_t{64} << level);
    x = paper_conv(b, x, path + ".conv2", std::int64_t{64} << level);
  }
  b.output(conv(b, x, "output", 3, {.kernel = {1, 1, 1}}));
}

// The reference of MLPerf Training (image segmentation, v1.0 to v3.1): patches of 128^3 voxels of one channel, 3
// classes.
void unet3d_mlperf(Builder& b) {
  const Ints filters = {32, 64, 128, 256, 320};
  Value x = b.input("input", {batch_extent, 1, 128, 128, 128});
  std::vector<Value> skips;
  for (std::size_t level = 0; level < filters.size(); ++level) {
    const std::string path = level == 0 ? "input_block" : "downsample." + std::to_string(level - 1);
    x = mlperf_block(b, x, path, filters[level], level == 0 ? 1 : 2);
    skips.push_back(x);
  }
  x = mlperf_block(b, x, "bottleneck", filters.back(), 2);
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const std::string path = "upsample." + std::to_string(i);
    const std::size_t level = filters.size() - 1 - i;
    x = up_convolution(b, x, path + ".upsample_conv", filters[level], true);
    x = mlperf_block(b, concat(b, {x, skips[level]}, 1), path, filters[level], 1);
  }
  b.output(conv(b, x, "output", 3, {.kernel = {1, 1, 1}}));
}

}  // namespace sibyl::zoo
