// Gradients that backward puts off: each leaf gets its own whole, and once.
#include "trainer/later_gradients.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/accumulation_hooks.h"

namespace sibyl::trainer {
namespace {

// Three linear layers of which the first has the weight of the last and the bias of the second: these two have nothing
// in common, and backward comes by them first.
class ThreeLayers {
 public:
  using Layer = std::function<at::Tensor(const std::vector<at::Tensor>& operands)>;

  ThreeLayers() {
    for (std::size_t i = 0; i < 2; ++i) {
      const double end = 1.0 + static_cast<double>(i);
      leaves_[i] = at::linspace(-1.0, end, 9).view({3, 3}).requires_grad_();
      leaves_[2 + i] = at::linspace(0.0, end, 3).requires_grad_();
    }
    for (std::size_t i = 0; i < leaves_.size(); ++i) hooks_.add(leaves_[i], [this, i] { ++added_[i]; });
  }

  // What of x, [2, 3], goes backward.
  void backward(const Layer& layer) {
    const auto& [outer, inner, of_last, shared] = leaves_;
    at::Tensor x = layer({at::linspace(-2.0, 3.0, 6).view({2, 3}), outer, shared});
    x = layer({x, inner, shared});
    x = layer({x, outer, of_last});
    torch::autograd::backward({x}, {at::ones_like(x)});
  }

  [[nodiscard]] const std::array<at::Tensor, 4>& leaves() const { return leaves_; }
  [[nodiscard]] const std::array<int, 4>& added() const { return added_; }

 private:
  std::array<at::Tensor, 4> leaves_;  // weights, then biases
  std::array<int, 4> added_ = {};     // how often to the gradient of each
  AccumulationHooks hooks_;
};

TEST(LaterGradients, AreAddedOnceWhateverLeavesOperationsShare) {
  const auto linear = [](const std::vector<at::Tensor>& operands) {
    return at::linear(operands[0], operands[1], operands[2]);
  };
  ThreeLayers at_once, later;
  at_once.backward(linear);
  LaterGradients put_off;
  later.backward([&](const std::vector<at::Tensor>& operands) {
    constexpr std::uint32_t weight_and_bias = 0b110;
    return put_off
        .record(weight_and_bias, operands,
                [&](const std::vector<at::Tensor>& own) { return std::vector<at::Tensor>{linear(own)}; })
        .at(0);
  });
  EXPECT_EQ(later.added(), (std::array<int, 4>{})) << "nothing is to come before run()";
  put_off.run();
  EXPECT_EQ(later.added(), (std::array<int, 4>{1, 1, 1, 1}));
  for (std::size_t i = 0; i < later.leaves().size(); ++i)
    EXPECT_TRUE(at::allclose(later.leaves()[i].grad(), at_once.leaves()[i].grad())) << i;
}

}  // namespace
}  // namespace sibyl::trainer
