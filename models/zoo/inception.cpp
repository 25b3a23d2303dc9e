// Szegedy et al., "Rethinking the Inception architecture for computer vision" (2015), with torchvision's names.
#include <optional>

#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

namespace {

// Convolution (no bias), batch-norm, ReLU. A branch is a chain of these.
struct Unit {
  std::string name;
  std::int64_t channels;
  Ints kernel;
  std::int64_t stride = 1;
  Ints pad = {0, 0};
};

Value unit(Builder& b, const Value& x, const std::string& path, const Unit& u) {
  const std::string name = path.empty() ? u.name : path + "." + u.name;
  const ConvOptions options = {.kernel = u.kernel, .stride = u.stride, .pad = u.pad, .bias = false};
  return relu(b, batch_norm(b, conv(b, x, name + ".conv", u.channels, options), name + ".bn", 1e-3));
}

Value branch(Builder& b, Value x, const std::string& path, const std::vector<Unit>& units) {
  for (const Unit& u : units) x = unit(b, x, path, u);
  return x;
}

// 35 x 35.
Value block_a(Builder& b, const Value& x, const std::string& path, std::int64_t pool_features) {
  const Value one = unit(b, x, path, {"branch1x1", 64, {1, 1}});
  const Value five = branch(b, x, path, {{"branch5x5_1", 48, {1, 1}}, {"branch5x5_2", 64, {5, 5}, 1, {2, 2}}});
  const Value three = branch(b, x, path,
                             {{"branch3x3dbl_1", 64, {1, 1}},
                              {"branch3x3dbl_2", 96, {3, 3}, 1, {1, 1}},
                              {"branch3x3dbl_3", 96, {3, 3}, 1, {1, 1}}});
  const Value pooled = average_pool(b, x, {.kernel = 3, .stride = 1, .pad = 1});
  return concat(b, {one, five, three, unit(b, pooled, path, {"branch_pool", pool_features, {1, 1}})}, 1);
}

// 35 x 35 to 17 x 17.
Value block_b(Builder& b, const Value& x, const std::string& path) {
  const Value three = unit(b, x, path, {"branch3x3", 384, {3, 3}, 2});
  const Value twice = branch(
      b, x, path,
      {{"branch3x3dbl_1", 64, {1, 1}}, {"branch3x3dbl_2", 96, {3, 3}, 1, {1, 1}}, {"branch3x3dbl_3", 96, {3, 3}, 2}});
  return concat(b, {three, twice, max_pool(b, x, {.kernel = 3, .stride = 2})}, 1);
}

// 17 x 17: 7 x 7 taken apart into rows and columns.
Value block_c(Builder& b, const Value& x, const std::string& path, std::int64_t width) {
  const Value one = unit(b, x, path, {"branch1x1", 192, {1, 1}});
  const Value seven = branch(b, x, path,
                             {{"branch7x7_1", width, {1, 1}},
                              {"branch7x7_2", width, {1, 7}, 1, {0, 3}},
                              {"branch7x7_3", 192, {7, 1}, 1, {3, 0}}});
  const Value twice = branch(b, x, path,
                             {{"branch7x7dbl_1", width, {1, 1}},
                              {"branch7x7dbl_2", width, {7, 1}, 1, {3, 0}},
                              {"branch7x7dbl_3", width, {1, 7}, 1, {0, 3}},
                              {"branch7x7dbl_4", width, {7, 1}, 1, {3, 0}},
                              {"branch7x7dbl_5", 192, {1, 7}, 1, {0, 3}}});
  const Value pooled = average_pool(b, x, {.kernel = 3, .stride = 1, .pad = 1});
  return concat(b, {one, seven, twice, unit(b, pooled, path, {"branch_pool", 192, {1, 1}})}, 1);
}

// 17 x 17 to 8 x 8.
Value block_d(Builder& b, const Value& x, const std::string& path) {
  const Value three = branch(b, x, path, {{"branch3x3_1", 192, {1, 1}}, {"branch3x3_2", 320, {3, 3}, 2}});
  const Value seven = branch(b, x, path,
                             {{"branch7x7x3_1", 192, {1, 1}},
                              {"branch7x7x3_2", 192, {1, 7}, 1, {0, 3}},
                              {"branch7x7x3_3", 192, {7, 1}, 1, {3, 0}},
                              {"branch7x7x3_4", 192, {3, 3}, 2}});
  return concat(b, {three, seven, max_pool(b, x, {.kernel = 3, .stride = 2})}, 1);
}

// A row and a column beside each other on the same input.
Value fork(Builder& b, const Value& x, const std::string& path, const std::string& name) {
  return concat(
      b,
      {unit(b, x, path, {name + "a", 384, {1, 3}, 1, {0, 1}}), unit(b, x, path, {name + "b", 384, {3, 1}, 1, {1, 0}})},
      1);
}

// 8 x 8.
Value block_e(Builder& b, const Value& x, const std::string& path) {
  const Value one = unit(b, x, path, {"branch1x1", 320, {1, 1}});
  const Value three = fork(b, unit(b, x, path, {"branch3x3_1", 384, {1, 1}}), path, "branch3x3_2");
  const Value deep = branch(b, x, path, {{"branch3x3dbl_1", 448, {1, 1}}, {"branch3x3dbl_2", 384, {3, 3}, 1, {1, 1}}});
  const Value twice = fork(b, deep, path, "branch3x3dbl_3");
  const Value pooled = average_pool(b, x, {.kernel = 3, .stride = 1, .pad = 1});
  return concat(b, {one, three, twice, unit(b, pooled, path, {"branch_pool", 192, {1, 1}})}, 1);
}

Value stem(Builder& b, const Value& image) {
  Value x = branch(
      b, image, "",
      {{"Conv2d_1a_3x3", 32, {3, 3}, 2}, {"Conv2d_2a_3x3", 32, {3, 3}}, {"Conv2d_2b_3x3", 64, {3, 3}, 1, {1, 1}}});
  x = max_pool(b, x, {.kernel = 3, .stride = 2});
  x = branch(b, x, "", {{"Conv2d_3b_1x1", 80, {1, 1}}, {"Conv2d_4a_3x3", 192, {3, 3}}});
  return max_pool(b, x, {.kernel = 3, .stride = 2});
}

Value auxiliary_classifier(Builder& b, const Value& x) {
  const Value pooled = average_pool(b, x, {.kernel = 5, .stride = 3});
  const Value y = branch(b, pooled, "AuxLogits", {{"conv0", 128, {1, 1}}, {"conv1", 768, {5, 5}}});
  return fully_connected(b, flatten(b, global_average_pool(b, y)), "AuxLogits.fc", 1000);
}

}  // namespace

void inception_v3(Builder& b, bool auxiliary) {
  Value x = stem(b, b.input("input", {batch_extent, 3, 299, 299}));
  x = block_a(b, x, "Mixed_5b", 32);
  x = block_a(b, x, "Mixed_5c", 64);
  x = block_a(b, x, "Mixed_5d", 64);
  x = block_b(b, x, "Mixed_6a");
  x = block_c(b, x, "Mixed_6b", 128);
  x = block_c(b, x, "Mixed_6c", 160);
  x = block_c(b, x, "Mixed_6d", 160);
  x = block_c(b, x, "Mixed_6e", 192);
  std::optional<Value> second;
  if (auxiliary) second = auxiliary_classifier(b, x);
  x = block_d(b, x, "Mixed_7a");
  x = block_e(b, x, "Mixed_7b");
  x = block_e(b, x, "Mixed_7c");
  x = flatten(b, dropout(b, global_average_pool(b, x), 0.5));
  b.output(fully_connected(b, x, "fc", 1000));
  if (second) b.output(*second);
}

}  // namespace sibyl::zoo
