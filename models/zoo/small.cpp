// Networks that train in moments: LeNet-5, and a CNN for the 8 x 8 digits that scikit-learn ships.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

// LeCun et al., "Gradient-based learning applied to document recognition" (1998), fully connected between its two
// convolutions as it is taught today: 28 x 28 images padded by 2, 61,706 parameters.
void lenet(Builder& b) {
  Value x = b.input("input", {batch_extent, 1, 28, 28});
  x = average_pool(b, tanh(b, conv(b, x, "conv1", 6, {.kernel = {5, 5}, .pad = {2, 2}})), {});
  x = average_pool(b, tanh(b, conv(b, x, "conv2", 16, {.kernel = {5, 5}})), {});
  x = tanh(b, fully_connected(b, flatten(b, x), "fc1", 120));
  x = tanh(b, fully_connected(b, x, "fc2", 84));
  b.output(fully_connected(b, x, "fc3", 10));
}

void small_cnn(Builder& b, bool with_batch_norm) {
  Value x = b.input("input", {batch_extent, 1, 8, 8});
  for (const auto& [index, channels] : {std::pair<std::string, std::int64_t>{"1", 16}, {"2", 32}}) {
    x = conv(b, x, "conv" + index, channels, {.kernel = {3, 3}, .pad = {1, 1}, .bias = !with_batch_norm});
    if (with_batch_norm) x = batch_norm(b, x, "bn" + index);
    x = relu(b, x);
  }
  x = relu(b, fully_connected(b, flatten(b, max_pool(b, x, {})), "fc1", 64));
  b.output(fully_connected(b, x, "fc2", 10));
}

}  // namespace sibyl::zoo
