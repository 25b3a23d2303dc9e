// Small tensors from and to plain numbers.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "aten/run_operation.h"

namespace sibyl::aten {

inline at::Tensor tensor(const std::vector<double>& values, const std::vector<std::int64_t>& shape) {
  return at::tensor(values, at::kDouble).to(at::kFloat).reshape(shape);
}
inline at::Tensor ids(const std::vector<std::int64_t>& values, const std::vector<std::int64_t>& shape) {
  return at::tensor(values, at::kLong).reshape(shape);
}
// 0, 1, 2, … in this shape.
inline at::Tensor counting(const std::vector<std::int64_t>& shape) {
  return at::arange(element_count(shape), at::kFloat).reshape(shape);
}
inline std::vector<double> values(const at::Tensor& t) {
  const at::Tensor flat = t.detach().to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}
inline at::Tensor run_one(const Attributes& op, const std::vector<at::Tensor>& in, const Shape& out = {}) {
  return run_operation(op, in, {out}).at(0);
}
inline void expect_values(const at::Tensor& t, const std::vector<std::int64_t>& shape, const std::vector<double>& want,
                          double tolerance = 1e-6) {
  EXPECT_EQ(t.sizes().vec(), shape);
  const std::vector<double> got = values(t);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << "at " << i;
}

}  // namespace sibyl::aten
