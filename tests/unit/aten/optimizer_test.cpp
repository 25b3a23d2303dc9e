#include "aten/optimizer.h"

#include <cmath>

#include "tests/unit/aten/values.h"

namespace sibyl::aten {
namespace {

// Two steps from w = 1 with gradients 0.5 and 0.25.
double two_steps(OptimizerKind kind, bool decays, const OptimizerSettings& settings) {
  at::Tensor w = tensor({1}, {1}).requires_grad_();
  const OptimizerUpdate update{kind, decays};
  OptimizerState state = make_optimizer_state(update, w);
  for (const double g : {0.5, 0.25}) update_parameter(update, settings, state, w, tensor({g}, {1}));
  return w.item<double>();
}

constexpr OptimizerSettings settings{.learning_rate = 0.1, .momentum = 0.9, .decay = 0.1};

TEST(Optimizer, sgd) {
  EXPECT_NEAR(two_steps(OptimizerKind::sgd, false, settings), 1 - 0.1 * 0.75, 1e-6);
  // With decay: 1 - 0.1 (0.5 + 0.1) = 0.94, then 0.94 - 0.1 (0.25 + 0.094).
  EXPECT_NEAR(two_steps(OptimizerKind::sgd, true, settings), 0.9056, 1e-6);
}

TEST(Optimizer, momentum) {
  // m = 0.5, then 0.45 + 0.25 = 0.7.
  EXPECT_NEAR(two_steps(OptimizerKind::momentum, false, settings), 1 - 0.05 - 0.07, 1e-6);
}

// Adam in double precision, as the paper writes it (Kingma & Ba, algorithm 1).
double adam_by_hand(double decay) {
  double w = 1, m = 0, v = 0;
  int t = 0;
  for (const double g : {0.5, 0.25}) {
    ++t;
    w *= 1 - 0.1 * decay;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    w -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
  return w;
}

TEST(Optimizer, adam_and_adamw) {
  EXPECT_NEAR(two_steps(OptimizerKind::adam, false, settings), adam_by_hand(0.0), 1e-5);
  EXPECT_NEAR(two_steps(OptimizerKind::adamw, false, settings), adam_by_hand(0.1), 1e-5);
}

TEST(Optimizer, keeps_state_of_the_parameters_shape) {
  const at::Tensor w = at::ones({2, 3});
  EXPECT_FALSE(make_optimizer_state({OptimizerKind::sgd, false}, w).first.defined());
  EXPECT_EQ(make_optimizer_state({OptimizerKind::momentum, false}, w).first.sizes(), w.sizes());
  EXPECT_FALSE(make_optimizer_state({OptimizerKind::momentum, false}, w).second.defined());
  EXPECT_EQ(make_optimizer_state({OptimizerKind::adamw, false}, w).second.sizes(), w.sizes());
}

}  // namespace
}  // namespace sibyl::aten
