#include <cmath>

#include "tests/unit/aten/values.h"

namespace sibyl::aten {
namespace {

TEST(Linear, both_layouts_of_the_weight_agree) {
  // x = [0 1 2; 3 4 5], w = [1 0; 0 1; 1 1] ([K, N]), b = [10, 20]: y = [0+2, 1+2; 3+5, 4+5] + b.
  const at::Tensor x = counting({2, 3}), b = tensor({10, 20}, {2}), kn = tensor({1, 0, 0, 1, 1, 1}, {3, 2});
  const std::vector<double> want = {12, 23, 18, 29};
  expect_values(run_one(Linear{true}, {x, kn, b}), {2, 2}, want);
  expect_values(run_one(Linear{false}, {x, kn.t().contiguous(), b}), {2, 2}, want);
  expect_values(run_one(Linear{true}, {x.reshape({1, 2, 3}), kn, b}), {1, 2, 2}, want);
  expect_values(run_one(Linear{true}, {x, kn}), {2, 2}, {2, 3, 8, 9});
}

TEST(MatMul, broadcasts_leading_dimensions) {
  // Each 1x2 row (0 1), (2 3) times the column (1, 10).
  expect_values(run_one(MatMul{}, {counting({2, 1, 2}), tensor({1, 10}, {2, 1})}), {2, 1, 1}, {10, 32});
}

TEST(Attention, is_the_softmax_mix_of_values) {
  // One head, one query q = ln 3, keys 1 and 0, scale 1: weights 3/4 and 1/4 of values 4 and 8: 5.
  const at::Tensor q = tensor({std::log(3.0)}, {1, 1, 1, 1}), k = tensor({1, 0}, {1, 1, 2, 1}),
                   v = tensor({4, 8}, {1, 1, 2, 1});
  expect_values(run_one(Attention{}, {q, k, v}), {1, 1, 1, 1}, {5});
  // Scale 0 makes the weights equal; a mask of -1e9 on the first key leaves the second.
  expect_values(run_one(Attention{false, 0.0, 0.0}, {q, k, v}), {1, 1, 1, 1}, {6});
  expect_values(run_one(Attention{}, {q, k, v, tensor({-1e9, 0}, {1, 1, 1, 2})}), {1, 1, 1, 1}, {8});
}

TEST(Attention, causal_queries_see_only_the_past) {
  // Equal keys: query i averages values 0..i of (2, 4, 9).
  const at::Tensor zeros = at::zeros({1, 1, 3, 1});
  expect_values(run_one(Attention{true, 1.0, 0.0}, {zeros, zeros, tensor({2, 4, 9}, {1, 1, 3, 1})}), {1, 1, 3, 1},
                {2, 3, 5});
}

TEST(Attention, key_heads_serve_neighbouring_query_heads) {
  // Four query heads, two key heads with constant values 1 and 2.
  const at::Tensor q = at::zeros({1, 4, 1, 1}), kv = tensor({1, 2}, {1, 2, 1, 1});
  expect_values(run_one(Attention{}, {q, kv, kv}), {1, 4, 1, 1}, {1, 1, 2, 2});
}

TEST(Normalization, layer_and_rms) {
  // (1, 3): mean 2, variance 1 -> (-1, 1), then times 2 plus 5. rms of (3, 4) is sqrt(12.5).
  const at::Tensor scale = tensor({2, 2}, {2}), shift = tensor({5, 5}, {2});
  const Normalization layer{NormalizationKind::layer, 1, 1, 0.0, 0.1};
  expect_values(run_one(layer, {tensor({1, 3}, {1, 2}), scale, shift}), {1, 2}, {3, 7});
  const Normalization rms{NormalizationKind::rms, 1, 1, 0.0, 0.1};
  expect_values(run_one(rms, {tensor({3, 4}, {1, 2}), scale}), {1, 2}, {6 / std::sqrt(12.5), 8 / std::sqrt(12.5)});
}

TEST(Normalization, batch_normalises_over_the_batch_and_tracks_statistics) {
  // One channel of (1, 3): mean 2, biased variance 1; PyTorch tracks the unbiased variance 2. Weight 0.1 of the new.
  at::Tensor mean = tensor({0}, {1}), variance = tensor({1}, {1});
  const at::Tensor y = run_one(Normalization{NormalizationKind::batch, 1, 1, 0.0, 0.1},
                               {tensor({1, 3}, {2, 1, 1, 1}), at::ones({1}), at::zeros({1}), mean, variance});
  expect_values(y, {2, 1, 1, 1}, {-1, 1});
  expect_values(mean, {1}, {0.2});
  expect_values(variance, {1}, {1.1});
}

TEST(Normalization, group_and_instance) {
  // Two channels, one value each: as one group (1, 3) -> (-1, 1). Instance: each channel of (1, 3) alone.
  const at::Tensor one = at::ones({2}), zero = at::zeros({2});
  expect_values(
      run_one(Normalization{NormalizationKind::group, 1, 1, 0.0, 0.1}, {tensor({1, 3}, {1, 2, 1, 1}), one, zero}),
      {1, 2, 1, 1}, {-1, 1});
  expect_values(run_one(Normalization{NormalizationKind::instance, 1, 1, 0.0, 0.1},
                        {tensor({1, 3, 10, 30}, {1, 2, 1, 2}), one, zero}),
                {1, 2, 1, 2}, {-1, 1, -1, 1});
}

// In mixed precision images come in two bytes, and scale and shift in four.
TEST(Normalization, of_two_bytes_by_scales_of_four) {
  const at::Tensor x = tensor({1, 3, 10, 30}, {1, 2, 1, 2}).to(at::kBFloat16), one = at::ones({2}),
                   zero = at::zeros({2});
  for (const NormalizationKind kind : {NormalizationKind::batch, NormalizationKind::instance}) {
    const at::Tensor y = run_one(Normalization{kind, 1, 1, 0.0, 0.1}, {x, one, zero});
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    expect_values(y, {1, 2, 1, 2}, {-1, 1, -1, 1});
  }
}

TEST(LocalResponseNorm, divides_by_the_neighbourhood) {
  // One pixel, channels (1, 2, 3), size 3, alpha 3 (so alpha/size = 1), beta 1, k 0: x_c / sum of neighbours' squares.
  expect_values(run_one(LocalResponseNorm{3, 3.0, 1.0, 0.0}, {tensor({1, 2, 3}, {1, 3, 1, 1})}), {1, 3, 1, 1},
                {1.0 / 5, 2.0 / 14, 3.0 / 13});
}

TEST(Losses, cross_entropy_of_equal_logits_is_log_of_the_classes) {
  EXPECT_NEAR(run_one(CrossEntropy{1}, {at::zeros({2, 4}), ids({0, 3}, {2})}).item<double>(), std::log(4.0), 1e-6);
  EXPECT_NEAR(run_one(CrossEntropy{2}, {at::zeros({2, 3, 8}), ids({0, 1, 2, 3, 4, 5}, {2, 3})}).item<double>(),
              std::log(8.0), 1e-6);
  EXPECT_NEAR(run_one(CrossEntropy{1}, {at::zeros({2, 4, 3}), ids({0, 1, 2, 3, 0, 1}, {2, 3})}).item<double>(),
              std::log(4.0), 1e-6);
  // ((1-0)² + (3-1)²) / 2
  EXPECT_NEAR(run_one(MeanSquaredError{}, {tensor({1, 3}, {2}), tensor({0, 1}, {2})}).item<double>(), 2.5, 1e-6);
}

}  // namespace
}  // namespace sibyl::aten
