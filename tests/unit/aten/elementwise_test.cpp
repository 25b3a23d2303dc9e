#include <cmath>
#include <limits>

#include "tests/unit/aten/values.h"

namespace sibyl::aten {
namespace {

double unary(UnaryKind kind, double x, double alpha = 0.0, double beta = 0.0) {
  return run_one(Unary{kind, alpha, beta}, {tensor({x}, {1})}).item<double>();
}

TEST(Unary, each_function_at_one_point) {
  using enum UnaryKind;
  const double sigmoid1 = 1 / (1 + std::exp(-1.0));
  struct Point {
    UnaryKind kind;
    double x, alpha, beta, want;
  };
  const std::vector<Point> points = {{relu, -2, 0, 0, 0},
                                     {leaky_relu, -2, 0.1, 0, -0.2},
                                     {prelu, -2, 0.25, 0, -0.5},
                                     {elu, -1, 2, 0, 2 * (std::exp(-1.0) - 1)},
                                     {gelu, 1, 0, 0, 0.5 * (1 + std::erf(1 / std::sqrt(2.0)))},
                                     {gelu_tanh, 1, 0, 0, 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * 1.044715))},
                                     {silu, 1, 0, 0, sigmoid1},
                                     {hard_swish, 1, 0, 0, 4.0 / 6},
                                     {hard_sigmoid, 1, 0, 0, 4.0 / 6},
                                     {hard_sigmoid, 1, 0.2, 0.5, 0.7},
                                     {sigmoid, 1, 0, 0, sigmoid1},
                                     {tanh, 1, 0, 0, std::tanh(1.0)},
                                     {softplus, 1, 0, 0, std::log(1 + std::exp(1.0))},
                                     {mish, 1, 0, 0, std::tanh(std::log(1 + std::exp(1.0)))},
                                     {clip, 9, 0, 6, 6},
                                     {clip, -9, -1, 1, -1},
                                     {clip, 9, 0, std::numeric_limits<double>::infinity(), 9},
                                     {erf, 1, 0, 0, std::erf(1.0)},
                                     {exp, 1, 0, 0, std::exp(1.0)},
                                     {log, 2, 0, 0, std::log(2.0)},
                                     {sqrt, 9, 0, 0, 3},
                                     {rsqrt, 4, 0, 0, 0.5},
                                     {reciprocal, 4, 0, 0, 0.25},
                                     {pow, 3, 2, 0, 9},
                                     {abs, -3, 0, 0, 3},
                                     {neg, 3, 0, 0, -3},
                                     {sin, 1, 0, 0, std::sin(1.0)},
                                     {cos, 1, 0, 0, std::cos(1.0)},
                                     {floor, -1.5, 0, 0, -2},
                                     {ceil, -1.5, 0, 0, -1},
                                     {round, 1.6, 0, 0, 2},
                                     {sign, -3, 0, 0, -1},
                                     {logical_not, 0, 0, 0, 1},
                                     {scale_shift, 3, 2, 1, 7},
                                     {scale_shift, 3, 1, 1, 4},
                                     {scale_shift, 3, 2, 0, 6}};
  for (const Point& p : points)
    EXPECT_NEAR(unary(p.kind, p.x, p.alpha, p.beta), p.want, 1e-5)
        << enum_names(p.kind)[static_cast<std::size_t>(p.kind)];
}

TEST(Binary, each_function_of_7_and_2) {
  using enum BinaryKind;
  const at::Tensor a = tensor({7}, {1}), b = tensor({2}, {1});
  const std::vector<std::pair<BinaryKind, double>> wants = {
      {add, 9},        {sub, 5},     {mul, 14},          {div, 3.5},       {pow, 49},
      {min, 2},        {max, 7},     {mod, 1},           {equal, 0},       {less, 0},
      {less_equal, 0}, {greater, 1}, {greater_equal, 1}, {logical_and, 1}, {logical_or, 1}};
  for (const auto& [kind, want] : wants)
    EXPECT_EQ(run_one(Binary{kind}, {a, b}).item<double>(), want) << enum_names(kind)[static_cast<std::size_t>(kind)];
  // Integers divide to integers; shapes broadcast.
  EXPECT_EQ(run_one(Binary{div}, {ids({7}, {1}), ids({2}, {1})}).item<double>(), 3);
  EXPECT_EQ(run_one(Binary{add}, {counting({2, 1}), counting({3})}).sizes().vec(), (std::vector<std::int64_t>{2, 3}));
}

TEST(Where, chooses) {
  expect_values(run_one(Where{}, {ids({1, 0}, {2}), tensor({1, 2}, {2}), tensor({3, 4}, {2})}), {2}, {1, 4});
}

TEST(Softmax, sums_to_one_along_its_axis) {
  expect_values(run_one(Softmax{0, false}, {at::zeros({4, 1})}), {4, 1}, {0.25, 0.25, 0.25, 0.25});
  expect_values(run_one(Softmax{1, true}, {at::zeros({1, 2})}), {1, 2}, {-std::log(2.0), -std::log(2.0)});
}

TEST(Dropout, keeps_the_mean_and_drops_the_ratio) {
  at::manual_seed(1);
  const at::Tensor y = run_one(Dropout{0.25}, {at::ones({100000})});
  // 100,000 draws at 1/4: one standard deviation is 0.0014.
  EXPECT_NEAR(y.eq(0).to(at::kFloat).mean().item<double>(), 0.25, 0.01);
  EXPECT_NEAR(y.max().item<double>(), 1 / 0.75, 1e-6);
  EXPECT_TRUE(at::equal(run_one(Dropout{0.0}, {counting({3})}), counting({3})));
}

TEST(Layout, views_share_memory_and_copies_do_not) {
  const at::Tensor x = counting({2, 3});
  const at::Tensor reshaped = run_one(Reshape{}, {x}, {3, 2});
  EXPECT_EQ(reshaped.data_ptr(), x.data_ptr());
  expect_values(run_one(Transpose{{1, 0}}, {x}), {3, 2}, {0, 3, 1, 4, 2, 5});
  EXPECT_TRUE(run_one(Transpose{{1, 0}}, {x}).is_contiguous());
  EXPECT_NE(run_one(Reshape{}, {x.t()}, {6}).data_ptr(), x.data_ptr());
  EXPECT_NE(run_one(Copy{}, {x}).data_ptr(), x.data_ptr());
  EXPECT_EQ(run_one(Expand{}, {counting({1, 3})}, {2, 3}).stride(0), 0);
}

TEST(Layout, slices_splits_concatenations) {
  const at::Tensor x = counting({2, 4});
  expect_values(run_one(Slice{{1}, {1}, {4}, {2}}, {x}), {2, 2}, {1, 3, 5, 7});
  expect_values(run_one(Slice{{1}, {3}, {-1}, {-1}}, {x}), {2, 4}, {3, 2, 1, 0, 7, 6, 5, 4});
  const auto parts = run_operation(Split{1, {1, 3}}, {x}, {});
  expect_values(parts.at(0), {2, 1}, {0, 4});
  expect_values(parts.at(1), {2, 3}, {1, 2, 3, 5, 6, 7});
  EXPECT_TRUE(at::equal(run_one(Concat{1}, parts), x));
}

TEST(Layout, gradients_pass_through_concatenations_and_transposes) {
  const at::Tensor a = counting({2, 1}).requires_grad_(true), b = counting({2, 2}).requires_grad_(true);
  const at::Tensor y = run_one(Transpose{{1, 0}}, {run_one(Concat{1}, {a, b})});  // 3 x 2
  y.backward(counting({3, 2}));
  // y's gradient is 0 1 / 2 3 / 4 5: its first row is a's column, the others are b's.
  expect_values(a.grad(), {2, 1}, {0, 1});
  expect_values(b.grad(), {2, 2}, {2, 4, 3, 5});
}

TEST(Layout, gathers_and_embeds) {
  const at::Tensor x = counting({3, 2});
  expect_values(run_one(Gather{0}, {x, ids({2, -3}, {2})}), {2, 2}, {4, 5, 0, 1});
  expect_values(run_one(Gather{1}, {x, ids({1}, {})}), {3}, {1, 3, 5});  // a scalar index drops the axis
  expect_values(run_one(Gather{1}, {x, ids({1, 0}, {1, 2})}), {3, 1, 2}, {1, 0, 3, 2, 5, 4});
  expect_values(run_one(Embedding{}, {x, ids({2, 0}, {1, 2})}), {1, 2, 2}, {4, 5, 0, 1});
}

// Two ranks share the columns of 0 1 2 3 / 4 5 6 7. The first one's half; with two pieces, the first of each; beside
// its own half, for the other's, it again; and rows given for columns.
TEST(Packing, first_of_two_ranks) {
  const at::Tensor x = counting({2, 4});
  expect_values(run_one(Packing{.apart = 1}, {x}), {2, 2}, {0, 1, 4, 5});
  expect_values(run_one(Packing{.apart = 1, .apart_pieces = {2, 2}}, {x}), {2, 2}, {0, 2, 4, 6});
  expect_values(run_one(Packing{.together = 1}, {counting({2, 2})}), {2, 4}, {0, 1, 0, 1, 2, 3, 2, 3});
  expect_values(run_one(Packing{.together = 1, .together_pieces = {2, 2}}, {counting({2, 2})}), {2, 4},
                {0, 0, 1, 1, 2, 2, 3, 3});
  expect_values(run_one(Packing{.apart = 0, .together = 1}, {x}), {1, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
}

// Three rows of two, 0 1 / 2 3 / 4 5. At the rim the larger slab goes and comes, beyond the other edge is 0; in the
// middle both come. Home again, the rows around 2 3 / 4 5 / 6 7 are added, at the rim on one side.
TEST(HaloPacking, rows_around_and_home) {
  const at::Tensor x = counting({1, 3, 2});
  expect_values(run_one(HaloPacking{.before = 2, .after = 1}, {x}), {1, 6, 2}, {0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 0, 0});
  expect_values(run_one(HaloPacking{.before = 0, .after = 1}, {x}), {1, 4, 2}, {0, 1, 2, 3, 4, 5, 0, 1});
  expect_values(run_one(HaloPacking{.before = 1, .after = 1, .middle = true}, {x}), {1, 5, 2},
                {0, 1, 0, 1, 2, 3, 4, 5, 4, 5});
  const at::Tensor wide = counting({1, 5, 2});
  expect_values(run_one(HaloPacking{.before = 1, .after = 1, .sums = true}, {wide}), {1, 3, 2}, {2, 4, 4, 5, 6, 7});
  expect_values(run_one(HaloPacking{.before = 1, .after = 1, .sums = true, .middle = true}, {wide}), {1, 3, 2},
                {2, 4, 4, 5, 14, 16});
}

// ONNX's own examples: 1 2 3 4 5 summed up both ways, with and without themselves.
TEST(RunningSum, both_ways) {
  const at::Tensor x = tensor({1, 2, 3, 4, 5}, {5});
  expect_values(run_one(RunningSum{0}, {x}), {5}, {1, 3, 6, 10, 15});
  expect_values(run_one(RunningSum{0, false, true}, {x}), {5}, {0, 1, 3, 6, 10});
  expect_values(run_one(RunningSum{0, true, false}, {x}), {5}, {15, 14, 12, 9, 5});
  expect_values(run_one(RunningSum{0, true, true}, {x}), {5}, {14, 12, 9, 5, 0});
  expect_values(run_one(RunningSum{1}, {counting({2, 3})}), {2, 3}, {0, 1, 3, 3, 7, 12});
  const at::Tensor whole = run_one(RunningSum{0}, {ids({0, 1, 1}, {3}).to(at::kInt)});
  EXPECT_EQ(whole.scalar_type(), at::kInt);
  expect_values(whole.to(at::kFloat), {3}, {0, 1, 2});
}

TEST(GatherElements, picks_one_by_one) {
  const at::Tensor x = counting({2, 3});
  expect_values(run_one(GatherElements{1}, {x, ids({2, 0, 1, 1}, {2, 2})}), {2, 2}, {2, 0, 4, 4});
  expect_values(run_one(GatherElements{0}, {x, ids({1, 0, 1}, {1, 3}).to(at::kInt)}), {1, 3}, {3, 1, 5});
}

TEST(Reduce, each_kind) {
  using enum ReduceKind;
  const at::Tensor x = tensor({1, -2, 3, 4, 5, -6}, {2, 3});
  expect_values(run_one(Reduce{sum, {1}, true}, {x}), {2, 1}, {2, 3});
  expect_values(run_one(Reduce{mean, {0}, false}, {x}), {3}, {2.5, 1.5, -1.5});
  expect_values(run_one(Reduce{max, {1}, false}, {x}), {2}, {3, 5});
  expect_values(run_one(Reduce{min, {0, 1}, false}, {x}), {}, {-6});
  expect_values(run_one(Reduce{prod, {}, false}, {x}), {}, {720});
  expect_values(run_one(Reduce{l1, {1}, false}, {x}), {2}, {6, 15});
  expect_values(run_one(Reduce{l2, {0}, false}, {tensor({3, 4}, {2, 1})}), {1}, {5});
  expect_values(run_one(Reduce{argmax, {1}, false}, {x}), {2}, {2, 1});
  expect_values(run_one(Reduce{argmin, {1}, true}, {x}), {2, 1}, {1, 2});
}

// Else whoever reads it next would copy it first (contiguous.h).
TEST(Reduce, a_sums_gradient_is_written_out) {
  for (const bool keep_dims : {true, false}) {
    const at::Tensor x = counting({2, 3, 2}).set_requires_grad(true);
    const at::Tensor before = x * 1;
    at::Tensor gradient;
    before.register_hook([&](const at::Tensor& arrived) { gradient = arrived; });
    const at::Tensor sums = run_one(Reduce{ReduceKind::sum, {-2}, keep_dims}, {before});
    (sums.reshape({2, 2}) * tensor({1, 2, 3, 4}, {2, 2})).sum().backward();
    EXPECT_TRUE(gradient.is_contiguous());
    expect_values(gradient, {2, 3, 2}, {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4});
  }
}

TEST(Cast, changes_the_type) {
  EXPECT_EQ(run_one(Cast{DType::i64}, {counting({2})}).scalar_type(), at::kLong);
  EXPECT_EQ(run_one(Cast{DType::bf16}, {counting({2})}).scalar_type(), at::kBFloat16);
}

TEST(RunOperation, refuses_an_optimizer_update) {
  EXPECT_THROW(run_operation(OptimizerUpdate{}, {counting({1})}, {}), c10::Error);
}

}  // namespace
}  // namespace sibyl::aten
