// Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition" (2014), with
// batch-norm or, as in the paper, without.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

void vgg(Builder& b, const VggOptions& options) {
  constexpr std::int64_t widths[] = {64, 128, 256, 512, 512};
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  int module = 0;  // the index in PyTorch's Sequential, which counts norms, ReLUs and poolings as well
  for (std::size_t block = 0; block < options.blocks.size(); ++block) {
    for (std::int64_t i = 0; i < options.blocks[block]; ++i) {
      const std::string name = "features." + std::to_string(module++);
      x = conv(b, x, name, widths[block], {.kernel = {3, 3}, .pad = {1, 1}});
      if (options.batch_norm) x = batch_norm(b, x, "features." + std::to_string(module++));
      x = relu(b, x);
      module += 1;
    }
    x = max_pool(b, x, {});
    module += 1;
  }
  // The adaptive pooling to 7 x 7, which 224 x 224 images already have here.
  x = flatten(b, average_pool(b, x, {.kernel = 1, .stride = 1}));
  x = dropout(b, relu(b, fully_connected(b, x, "classifier.0", 4096)), 0.5);
  x = dropout(b, relu(b, fully_connected(b, x, "classifier.3", 4096)), 0.5);
  b.output(fully_connected(b, x, "classifier.6", 1000));
}

}  // namespace sibyl::zoo
