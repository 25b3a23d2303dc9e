// Iandola et al., "SqueezeNet" (2016), version 1.1.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

Value fire(Builder& b, const Value& x, const std::string& path, std::int64_t squeeze, std::int64_t expand) {
  const Value narrow = relu(b, conv(b, x, path + ".squeeze", squeeze, {.kernel = {1, 1}}));
  const Value one = relu(b, conv(b, narrow, path + ".expand1x1", expand, {.kernel = {1, 1}}));
  const Value three = relu(b, conv(b, narrow, path + ".expand3x3", expand, {.kernel = {3, 3}, .pad = {1, 1}}));
  return concat(b, {one, three}, 1);
}

}  // namespace

void squeezenet(Builder& b) {
  const PoolOptions halve = {.kernel = 3, .stride = 2, .ceil_mode = true};
  Value x = b.input("input", {batch_extent, 3, 224, 224});
  x = max_pool(b, relu(b, conv(b, x, "features.0", 64, {.kernel = {3, 3}, .stride = 2})), halve);
  x = fire(b, x, "features.3", 16, 64);
  x = max_pool(b, fire(b, x, "features.4", 16, 64), halve);
  x = fire(b, x, "features.6", 32, 128);
  x = max_pool(b, fire(b, x, "features.7", 32, 128), halve);
  x = fire(b, x, "features.9", 48, 192);
  x = fire(b, x, "features.10", 48, 192);
  x = fire(b, x, "features.11", 64, 256);
  x = dropout(b, fire(b, x, "features.12", 64, 256), 0.5);
  x = relu(b, conv(b, x, "classifier.1", 1000, {.kernel = {1, 1}}));
  b.output(flatten(b, global_average_pool(b, x)));
}

}  // namespace sibyl::zoo
