// Isensee et al., "nnU-Net" (2021), for the brain tumours of the Medical Segmentation Decathlon (4 channels, 4
// classes), as NVIDIA's PyTorch example trains it with MONAI's DynUNet and without deep supervision: patches of 192 x
// 160 or of 128^3, instance norm, leaky ReLU. And NVIDIA's TensorFlow 3-D U-Net for BraTS, of the same plan but for its
// output, which is a 3 x 3 x 3 convolution.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

constexpr double slope = 0.01;

class Network {
 public:
  Network(Builder& b, bool norms_in_full) : b_(b), norms_in_full_(norms_in_full) {}

  Value conv_block(const Value& x, const std::string& path, std::int64_t channels, std::int64_t stride) {
    return conv_layer(conv_layer(x, path + ".1", channels, stride), path + ".2", channels, 1);
  }

 private:
  Value conv_layer(const Value& x, const std::string& path, std::int64_t channels, std::int64_t stride) {
    const std::size_t rank = x.shape.size() - 2;
    const ConvOptions options = {.kernel = Ints(rank, 3), .stride = stride, .pad = Ints(rank, 1), .bias = false};
    const Value y = conv(b_, x, path + ".conv", channels, options);
    const std::string norm = path + ".norm";
    return leaky_relu(b_, norms_in_full_ ? group_norm(b_, y, norm, channels, 1e-6) : instance_norm(b_, y, norm), slope);
  }

  Builder& b_;
  bool norms_in_full_;
};

}  // namespace

void nnunet(Builder& b, const NnUnetOptions& options) {
  Shape shape = {batch_extent, 4};
  shape.insert(shape.end(), options.patch.begin(), options.patch.end());
  const Ints widths = {32, 64, 128, 256, options.most_channels, options.most_channels};
  Network network(b, options.norms_in_full);
  Value x = b.input("input", std::move(shape));
  std::vector<Value> skips;
  for (std::size_t level = 0; level < widths.size(); ++level) {
    x = network.conv_block(x, "down" + std::to_string(level), widths[level], level == 0 ? 1 : 2);
    skips.push_back(x);
  }
  for (std::size_t level = widths.size() - 1; level-- > 0;) {
    const std::string path = "up" + std::to_string(level);
    x = up_convolution(b, x, path + ".transp", widths[level], true);
    x = network.conv_block(concat(b, {x, skips[level]}, 1), path, widths[level], 1);
  }
  const std::int64_t kernel = options.output_kernel, pad = kernel / 2;
  const std::size_t rank = options.patch.size();
  b.output(conv(b, x, "output", 4, {.kernel = Ints(rank, kernel), .pad = Ints(rank, pad)}));
}

}  // namespace sibyl::zoo
