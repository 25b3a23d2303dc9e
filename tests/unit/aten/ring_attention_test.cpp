// Attention in a ring against attention of the whole. One rank's part by itself: what it passes on is what arrives, so
// that the others have the same keys and values as it has.
#include <gtest/gtest.h>

#include <cmath>

#include "aten/operations/ring_attention.h"
#include "aten/run_operation.h"

namespace sibyl::aten {
namespace {

struct Gradients {
  at::Tensor y, q, k, v;
};

at::Tensor leaf(const at::Tensor& values) { return values.clone().requires_grad_(); }

// Of the same incoming gradient.
Gradients trained(const Attention& op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  std::int64_t copies) {
  const at::Tensor own_q = leaf(q), own_k = leaf(k), own_v = leaf(v);
  const auto repeated = [&](const at::Tensor& x) { return at::cat(std::vector<at::Tensor>(copies, x), 2); };
  const at::Tensor y = run_operation(op, {own_q, repeated(own_k), repeated(own_v)}, {q.sizes().vec()}).front();
  y.backward(at::arange(y.numel(), y.options().requires_grad(false)).reshape(y.sizes()) / 100);
  return {y.detach(), own_q.grad(), own_k.grad(), own_v.grad()};
}

// The last of the ranks sees all keys of the others, and of a causal sequence its own up to the diagonal: as queries
// that are the last of all keys. Heads of keys may serve several of queries.
TEST(RingAttention, IsAttentionWithTheKeysOfAllRanks) {
  at::manual_seed(1);
  for (const std::int64_t ranks : {2, 3, 4})
    for (const bool causal : {false, true})
      for (const std::int64_t key_heads : {4, 2}) {
        const at::Tensor q = at::randn({2, 4, 5, 8}), k = at::randn({2, key_heads, 5, 8}),
                         v = at::randn({2, key_heads, 5, 8});
        Attention whole{.causal = causal, .scale = 0.3};
        const Gradients expected = trained(whole, q, k, v, ranks);
        whole.ring = ranks;
        const Gradients made = trained(whole, q, k, v, 1);
        EXPECT_TRUE(at::allclose(made.y, expected.y, 1e-4, 1e-5)) << ranks << causal << key_heads;
        EXPECT_TRUE(at::allclose(made.q, expected.q, 1e-4, 1e-5)) << ranks << causal << key_heads;
        EXPECT_TRUE(at::allclose(made.k, expected.k, 1e-4, 1e-5)) << ranks << causal << key_heads;
        EXPECT_TRUE(at::allclose(made.v, expected.v, 1e-4, 1e-5)) << ranks << causal << key_heads;
      }
}

// Keys of great scores come after small ones, and before them: what was summed is scaled, and nothing overflows.
TEST(RingAttention, ScalesWhatItHasWhenGreaterScoresCome) {
  class Given final : public Ring {
   public:
    explicit Given(std::vector<at::Tensor> part) : part_(std::move(part)) {}
    [[nodiscard]] int rank() const override { return 1; }
    [[nodiscard]] int ranks() const override { return 2; }
    void pass(std::vector<at::Tensor>) override {}
    std::vector<at::Tensor> arrived() override { return part_; }

   private:
    std::vector<at::Tensor> part_;
  };
  const at::Tensor one = at::ones({1, 1, 1, 1});
  for (const double far : {-200.0, 0.0, 200.0}) {
    const at::Tensor y = ring_attention(Attention{.ring = 2}, {one, one, one * 3},
                                        std::make_shared<Given>(std::vector<at::Tensor>{one * (1 + far), one * 7}));
    const double weight = 1 / (1 + std::exp(-far));
    EXPECT_NEAR(y.item<double>(), 3 + 4 * weight, 1e-5) << far;
  }
}

// With dropout: of the result as a function of the values, which is linear, the gradient is what the probabilities
// were; and a step along the gradients of queries and keys raises what backward began from as much as they say.
TEST(RingAttention, DrawsTheSameNoiseBackward) {
  const auto one = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    at::manual_seed(7);
    return run_operation(Attention{.causal = true, .scale = 0.5, .dropout = 0.5, .ring = 3}, {q, k, v},
                         {q.sizes().vec()})
        .front();
  };
  at::manual_seed(1);
  const at::Tensor q = leaf(at::randn({1, 2, 4, 8})), k = leaf(at::randn({1, 2, 4, 8})),
                   v = leaf(at::randn({1, 2, 4, 8}));
  const at::Tensor weights = at::randn({1, 2, 4, 8});
  (one(q, k, v) * weights).sum().backward();
  const at::NoGradGuard no_grad;
  const auto value = [&](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    return (one(a, b, c) * weights).sum().item<double>();
  };
  EXPECT_NEAR((v.grad() * v).sum().item<double>(), value(q, k, v), 1e-3);
  constexpr double step = 1e-2;
  for (const bool of_q : {true, false}) {
    const at::Tensor gradient = of_q ? q.grad() : k.grad();
    const at::Tensor away = gradient / gradient.norm();
    const double up = of_q ? value(q + away * step, k, v) : value(q, k + away * step, v),
                 down = of_q ? value(q - away * step, k, v) : value(q, k - away * step, v);
    EXPECT_NEAR((up - down) / (2 * step), gradient.norm().item<double>(), 1e-2 * gradient.norm().item<double>());
  }
}

}  // namespace
}  // namespace sibyl::aten
