// Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014): the single-tower AlexNet of
// torchvision.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

void alexnet(Builder& b) {
  const PoolOptions halve = {.kernel = 3, .stride = 2};
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = relu(b, conv(b, x, "features.0", 64, {.kernel = {11, 11}, .stride = 4, .pad = {2, 2}}));
  x = max_pool(b, x, halve);
  x = relu(b, conv(b, x, "features.3", 192, {.kernel = {5, 5}, .pad = {2, 2}}));
  x = max_pool(b, x, halve);
  x = relu(b, conv(b, x, "features.6", 384, {.kernel = {3, 3}, .pad = {1, 1}}));
  x = relu(b, conv(b, x, "features.8", 256, {.kernel = {3, 3}, .pad = {1, 1}}));
  x = relu(b, conv(b, x, "features.10", 256, {.kernel = {3, 3}, .pad = {1, 1}}));
  x = max_pool(b, x, halve);
  // The adaptive pooling to 6 x 6, which 224 x 224 images already have here.
  x = average_pool(b, x, {.kernel = 1, .stride = 1});
  x = dropout(b, flatten(b, x), 0.5);
  x = relu(b, fully_connected(b, x, "classifier.1", 4096));
  x = dropout(b, x, 0.5);
  x = relu(b, fully_connected(b, x, "classifier.4", 4096));
  b.output(fully_connected(b, x, "classifier.6", 1000));
}

}  // namespace sibyl::zoo
