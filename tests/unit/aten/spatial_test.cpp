#include "tests/unit/aten/values.h"

namespace sibyl::aten {
namespace {

Convolution convolution(Ints kernel, Ints stride, Ints begin, Ints end) {
  return {kernel, stride, Ints(kernel.size(), 1), begin, end, 1, false, {}};
}

TEST(Convolution, one_dimension_by_hand) {
  // x = 0 1 2 3, kernel (1, 1): sums of neighbours 1 3 5; bias 10. Padding the end alone adds 3 + 0.
  const at::Tensor x = counting({1, 1, 4}), w = at::ones({1, 1, 2}), b = tensor({10}, {1});
  expect_values(run_one(convolution({2}, {1}, {0}, {0}), {x, w, b}), {1, 1, 3}, {11, 13, 15});
  expect_values(run_one(convolution({2}, {1}, {0}, {1}), {x, w}), {1, 1, 4}, {1, 3, 5, 3});
  expect_values(run_one(convolution({2}, {2}, {1}, {1}), {x, w}), {1, 1, 3}, {0, 3, 3});
}

TEST(Convolution, transposed_spreads_and_crops) {
  // Kernel (1, 1) at stride 2 repeats each value; asymmetric padding crops one value off the end.
  Convolution op = convolution({2}, {2}, {0}, {0});
  op.transposed = true;
  const at::Tensor x = tensor({1, 2}, {1, 1, 2}), w = at::ones({1, 1, 2});
  expect_values(run_one(op, {x, w}), {1, 1, 4}, {1, 1, 2, 2});
  op.pad_end = {1};
  expect_values(run_one(op, {x, w}), {1, 1, 3}, {1, 1, 2});
}

TEST(Convolution, groups_and_three_dimensions) {
  Convolution depthwise = convolution({1, 1}, {1, 1}, {0, 0}, {0, 0});
  depthwise.groups = 2;
  expect_values(run_one(depthwise, {tensor({1, 2}, {1, 2, 1, 1}), tensor({3, 5}, {2, 1, 1, 1})}), {1, 2, 1, 1},
                {3, 10});
  // The sum of 0..7.
  expect_values(run_one(convolution({2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}),
                        {counting({1, 1, 2, 2, 2}), at::ones({1, 1, 2, 2, 2})}),
                {1, 1, 1, 1, 1}, {28});
}

Pool pool(PoolKind kind, Ints kernel, Ints stride, Ints begin, Ints end) {
  return {kind, false, kernel, stride, Ints(kernel.size(), 1), begin, end, false, false};
}

TEST(Pool, max_with_any_padding) {
  const at::Tensor x = tensor({-5, -4, -3, -2}, {1, 1, 4});
  expect_values(run_one(pool(PoolKind::max, {2}, {2}, {0}, {0}), {x}), {1, 1, 2}, {-4, -2});
  // Padding never wins, even where all values are negative: windows (pad -5) (-4 -3) (-2 pad).
  expect_values(run_one(pool(PoolKind::max, {2}, {2}, {1}, {1}), {x}), {1, 1, 3}, {-5, -3, -2});
  expect_values(run_one(pool(PoolKind::max, {3}, {2}, {0}, {1}), {x}), {1, 1, 2}, {-3, -2});
}

TEST(Pool, average_counts_padding_only_if_told) {
  const at::Tensor x = tensor({2, 4, 6, 8}, {1, 1, 4});
  Pool op = pool(PoolKind::average, {2}, {2}, {0}, {1});  // asymmetric: windows (2 4) (6 8); length 5 gives 2
  expect_values(run_one(op, {x}), {1, 1, 2}, {3, 7});
  op = pool(PoolKind::average, {2}, {1}, {0}, {1});  // (2 4) (4 6) (6 8) (8 pad)
  expect_values(run_one(op, {x}), {1, 1, 4}, {3, 5, 7, 8});
  op.count_include_pad = true;
  expect_values(run_one(op, {x}), {1, 1, 4}, {3, 5, 7, 4});
}

TEST(Pool, global) {
  Pool op;
  op.global = true;
  op.kind = PoolKind::average;
  expect_values(run_one(op, {counting({1, 2, 2, 2})}), {1, 2, 1, 1}, {1.5, 5.5});
  op.kind = PoolKind::max;
  expect_values(run_one(op, {counting({1, 2, 2, 2})}), {1, 2, 1, 1}, {3, 7});
}

TEST(Pad, each_end_of_each_dimension) {
  expect_values(run_one(Pad{{0, 1}, {1, 0}}, {tensor({7, 8}, {1, 2})}), {2, 3}, {0, 7, 8, 0, 0, 0});
}

TEST(Resize, nearest_and_linear) {
  const at::Tensor x = tensor({0, 4}, {1, 1, 1, 2});
  expect_values(run_one(Resize{ResizeKind::nearest}, {x}, {1, 1, 1, 4}), {1, 1, 1, 4}, {0, 0, 4, 4});
  // Half-pixel centres: source positions -0.25, 0.25, 0.75, 1.25, clamped.
  expect_values(run_one(Resize{ResizeKind::linear}, {x}, {1, 1, 1, 4}), {1, 1, 1, 4}, {0, 1, 3, 4});
}

}  // namespace
}  // namespace sibyl::aten
