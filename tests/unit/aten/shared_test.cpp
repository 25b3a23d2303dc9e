// The parts of operations that ranks share, put together here as collectives put them together: they must give what ATen's
// whole operation gives, and its gradients.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "tests/unit/aten/values.h"

namespace sibyl::aten {
namespace {

void expect_close(const at::Tensor& got, const at::Tensor& want, const char* what) {
  EXPECT_TRUE(at::allclose(got, want, 1e-5, 1e-6)) << what << ": " << got << " is not " << want;
}

// Classes 0..2 and 3..4; the last is made up to fill the second part, and minus infinity.
TEST(ClassStatistics, of_parts_make_the_loss_and_its_gradient) {
  at::manual_seed(1);
  const at::Tensor logits = (at::randn({4, 5}) * 3).requires_grad_(), targets = ids({0, 4, 2, 3}, {4});
  at::Tensor whole = logits.detach().clone().requires_grad_();
  const at::Tensor want = at::cross_entropy_loss(whole, targets);
  want.backward();

  const at::Tensor nothing = at::full({4, 1}, -std::numeric_limits<double>::infinity(), at::kFloat);
  const at::Tensor greatest = std::get<0>(logits.detach().max(1));
  const ClassStatistics op{1};
  const auto first = run_operation(op, {logits.slice(1, 0, 3), ids({0, -1, 2, -1}, {4}), greatest}, {{4}, {4}});
  const auto second = run_operation(
      op, {at::cat({logits.slice(1, 3, 5), nothing}, 1), ids({-1, 1, -1, 0}, {4}), greatest}, {{4}, {4}});
  const at::Tensor loss = ((first[0] + second[0]).log() - (first[1] + second[1])).mean();
  expect_close(loss, want, "loss");
  loss.backward();
  expect_close(logits.grad(), whole.grad(), "gradient");
}

// ln 1 and ln 2 above a shift of 0: 1 + 2; a target of another rank counts nothing.
TEST(ClassStatistics, sums_exponentials_and_picks_targets) {
  const at::Tensor z = tensor({0.0, std::log(2.0), 0.0, std::log(2.0)}, {2, 2});
  const auto parts = run_operation(ClassStatistics{1}, {z, ids({1, -1}, {2}), at::zeros({2})}, {{2}, {2}});
  expect_values(parts[0], {2}, {3, 3});
  expect_values(parts[1], {2}, {std::log(2.0), 0});
}

TEST(PartialEmbedding, parts_sum_to_the_whole_look_up) {
  at::Tensor table = counting({5, 2}).requires_grad_(), whole = counting({5, 2}).requires_grad_();
  const at::Tensor weights = tensor({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  (run_one(Embedding{}, {whole, ids({1, 4, 3, 1}, {4})}) * weights).sum().backward();
  const at::Tensor first = run_one(Embedding{true}, {table.slice(0, 0, 3), ids({1, -1, -1, 1}, {4})});
  const at::Tensor second = run_one(Embedding{true}, {table.slice(0, 3, 5), ids({-1, 1, 0, -1}, {4})});
  expect_values(first, {4, 2}, {2, 3, 0, 0, 0, 0, 2, 3});
  expect_values(second, {4, 2}, {0, 0, 8, 9, 6, 7, 0, 0});
  ((first + second) * weights).sum().backward();
  // Row 1 is looked up first and last: 1 + 7 and 2 + 8; row 3 third, row 4 second; rows 0 and 2 never.
  expect_values(table.grad(), {5, 2}, {0, 0, 8, 10, 0, 0, 5, 6, 3, 4});
  expect_close(table.grad(), whole.grad(), "gradient");
}

// Squares of 1 and 3: mean 5.
TEST(NormStatistics, are_the_means_of_values_and_squares) {
  expect_values(run_one(NormStatistics{}, {tensor({1, 3}, {2, 1, 1, 1})}), {2, 1}, {2, 5});
}

// Two parts of a batch of 6, with statistics that are means over both.
TEST(ApplyNorm, of_parts_is_batch_norm_of_all) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({6, 3, 4, 5}) * 2 + 1, dy = at::randn({6, 3, 4, 5});
  const auto parameter = [](const at::Tensor& values) { return values.clone().requires_grad_(); };
  const at::Tensor scale_values = at::rand({3}) + 0.5, shift_values = at::randn({3});

  at::Tensor a = parameter(x), scale = parameter(scale_values), shift = parameter(shift_values);
  at::Tensor mean = at::zeros({3}), variance = at::ones({3});
  const at::Tensor want = run_one(Normalization{}, {a, scale, shift, mean, variance});
  want.backward(dy);

  at::Tensor b = parameter(x), scale2 = parameter(scale_values), shift2 = parameter(shift_values);
  at::Tensor mean2 = at::zeros({3}), variance2 = at::ones({3});
  const at::Tensor upper = b.slice(0, 0, 3), lower = b.slice(0, 3, 6);
  const at::Tensor statistics = (run_one(NormStatistics{}, {upper}) + run_one(NormStatistics{}, {lower})) * 0.5;
  const ApplyNorm op{.parts = 2};
  const at::Tensor y = at::cat({run_one(op, {upper, statistics, scale2, shift2, mean2, variance2}),
                                run_one(op, {lower, statistics, scale2, shift2})});
  expect_close(y, want, "result");
  y.backward(dy);
  EXPECT_TRUE(at::allclose(b.grad(), a.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(scale2.grad(), scale.grad(), 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(shift2.grad(), shift.grad(), 1e-4, 1e-4));
  expect_close(mean2, mean, "running mean");
  expect_close(variance2, variance, "running variance, unbiased over both parts");
}

// Of two samples the two halves of an image 4 rows high; statistics are means over both.
void expect_parts_make(const Normalization& whole_norm, std::int64_t groups) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({2, 4, 4, 3, 5}) * 2 + 1, dy = at::randn({2, 4, 4, 3, 5});
  const auto parameter = [](const at::Tensor& values) { return values.clone().requires_grad_(); };
  const at::Tensor scale_values = at::rand({4}) + 0.5, shift_values = at::randn({4});

  at::Tensor a = parameter(x), scale = parameter(scale_values), shift = parameter(shift_values);
  const at::Tensor want = run_one(whole_norm, {a, scale, shift});
  want.backward(dy);

  at::Tensor b = parameter(x), scale2 = parameter(scale_values), shift2 = parameter(shift_values);
  const at::Tensor upper = b.slice(2, 0, 2), lower = b.slice(2, 2, 4);
  const NormStatistics statistics_of{groups};
  const at::Tensor statistics = (run_one(statistics_of, {upper}) + run_one(statistics_of, {lower})) * 0.5;
  EXPECT_EQ(statistics.sizes().vec(), (Shape{2, 2, groups}));
  const ApplyNorm op{.groups = groups, .parts = 2};
  const at::Tensor y =
      at::cat({run_one(op, {upper, statistics, scale2, shift2}), run_one(op, {lower, statistics, scale2, shift2})}, 2);
  expect_close(y, want, "result");
  y.backward(dy);
  EXPECT_TRUE(at::allclose(b.grad(), a.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(scale2.grad(), scale.grad(), 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(shift2.grad(), shift.grad(), 1e-4, 1e-4));
}

TEST(ApplyNorm, of_parts_of_images_is_instance_norm_of_all) { expect_parts_make({NormalizationKind::instance}, 4); }

TEST(ApplyNorm, of_parts_of_images_is_group_norm_of_all) { expect_parts_make({NormalizationKind::group, 1, 2}, 2); }

// Two samples of two channels in one group: 1 3 0 0 and 2 2 2 2 have the means 1 and 2, of squares 10 / 4 and 4.
TEST(NormStatistics, of_groups_are_each_samples_own) {
  expect_values(run_one(NormStatistics{1}, {tensor({1, 3, 0, 0, 2, 2, 2, 2}, {2, 2, 2})}), {2, 2, 1}, {1, 2, 2.5, 4});
}

}  // namespace
}  // namespace sibyl::aten
