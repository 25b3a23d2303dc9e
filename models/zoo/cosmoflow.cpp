// CosmoFlow as MLPerf HPC's reference trains it: crops of 128^3 voxels at 4 redshifts to 4 cosmological parameters;
// mean squared error. After Mathuriya et al., "CosmoFlow: using deep learning to learn the Universe at scale" (SC18).
#include "models/zoo/families.h"
#include "models/zoo/layers.h"

namespace sibyl::zoo {

void cosmoflow(Builder& b) {
  constexpr double slope = 0.3;  // Keras's LeakyReLU
  Value x = b.input("input", {batch_extent, 4, 128, 128, 128});
  for (int i = 0; i < 5; ++i) {
    x = conv(b, x, "conv" + std::to_string(i + 1), std::int64_t{32} << i, {.kernel = {3, 3, 3}, .pad = {1, 1, 1}});
    x = max_pool(b, leaky_relu(b, x, slope), {});
  }
  x = dropout(b, leaky_relu(b, fully_connected(b, flatten(b, x), "fc1", 128), slope), 0.5);
  x = dropout(b, leaky_relu(b, fully_connected(b, x, "fc2", 64), slope), 0.5);
  x = tanh(b, fully_connected(b, x, "fc3", 4));
  // Targets lie in [-1, 1]; the factor keeps them off tanh's ends.
  b.output(b.apply("Mul", {}, {x, b.scalar(1.2)}, x.shape));
  b.metadata("sibyl.loss", "mean_squared_error");
}

}  // namespace sibyl::zoo
