// Szegedy et al., "Going deeper with convolutions" (2014), as torchvision has it: with batch-norm, 3 x 3 in place of
// the paper's 5 x 5, and without the auxiliary classifiers.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

Value conv_norm(Builder& b, const Value& x, const std::string& path, std::int64_t channels, std::int64_t kernel,
                std::int64_t stride = 1) {
  const std::int64_t pad = kernel / 2;
  const ConvOptions options = {.kernel = {kernel, kernel}, .stride = stride, .pad = {pad, pad}, .bias = false};
  return relu(b, batch_norm(b, conv(b, x, path + ".conv", channels, options), path + ".bn", 1e-3));
}

// Channels of its four branches, reductions before the second and third.
struct Inception {
  std::string_view name;
  std::int64_t straight, reduced3, wide3, reduced5, wide5, pooled;
};

Value inception(Builder& b, const Value& x, const Inception& sizes) {
  const std::string path(sizes.name);
  const Value first = conv_norm(b, x, path + ".branch1", sizes.straight, 1);
  Value second = conv_norm(b, x, path + ".branch2.0", sizes.reduced3, 1);
  second = conv_norm(b, second, path + ".branch2.1", sizes.wide3, 3);
  Value third = conv_norm(b, x, path + ".branch3.0", sizes.reduced5, 1);
  third = conv_norm(b, third, path + ".branch3.1", sizes.wide5, 3);
  const Value pooled = max_pool(b, x, {.kernel = 3, .stride = 1, .pad = 1, .ceil_mode = true});
  const Value fourth = conv_norm(b, pooled, path + ".branch4.1", sizes.pooled, 1);
  return concat(b, {first, second, third, fourth}, 1);
}

}  // namespace

void googlenet(Builder& b) {
  const PoolOptions halve = {.kernel = 3, .stride = 2, .ceil_mode = true};
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = max_pool(b, conv_norm(b, x, "conv1", 64, 7, 2), halve);
  x = max_pool(b, conv_norm(b, conv_norm(b, x, "conv2", 64, 1), "conv3", 192, 3), halve);
  for (const Inception& sizes :
       {Inception{"inception3a", 64, 96, 128, 16, 32, 32}, Inception{"inception3b", 128, 128, 192, 32, 96, 64}})
    x = inception(b, x, sizes);
  x = max_pool(b, x, halve);
  for (const Inception& sizes :
       {Inception{"inception4a", 192, 96, 208, 16, 48, 64}, Inception{"inception4b", 160, 112, 224, 24, 64, 64},
        Inception{"inception4c", 128, 128, 256, 24, 64, 64}, Inception{"inception4d", 112, 144, 288, 32, 64, 64},
        Inception{"inception4e", 256, 160, 320, 32, 128, 128}})
    x = inception(b, x, sizes);
  x = max_pool(b, x, {.kernel = 2, .stride = 2, .ceil_mode = true});
  for (const Inception& sizes :
       {Inception{"inception5a", 256, 160, 320, 32, 128, 128}, Inception{"inception5b", 384, 192, 384, 48, 128, 128}})
    x = inception(b, x, sizes);
  x = dropout(b, flatten(b, global_average_pool(b, x)), 0.2);
  b.output(fully_connected(b, x, "fc", 1000));
}

}  // namespace sibyl::zoo
