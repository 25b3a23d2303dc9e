// Matrix products: MatMul, Gemm, com.microsoft's FusedMatMul. Einsum is in einsum.cpp.
#include <algorithm>

#include "models/onnx/operators/einsum.h"
#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

Ints swap_last_two(std::size_t rank) {
  Ints permutation(rank);
  for (std::size_t i = 0; i < rank; ++i) permutation[i] = static_cast<std::int64_t>(i);
  if (rank >= 2) std::swap(permutation[rank - 1], permutation[rank - 2]);
  return permutation;
}

// numpy's matmul: a vector becomes a row or a column, and that dimension is dropped from the result.
Result<Operand> matmul(Steps& steps, Operand a, Operand b) {
  Shape x = steps.fact(a).shape, y = steps.fact(b).shape;
  if (x.empty() || y.empty()) return fail("a matrix product of a scalar");
  const bool row = x.size() == 1, column = y.size() == 1;
  if (row) x.insert(x.begin(), 1);
  if (column) y.push_back(1);
  if (x.back() != y[y.size() - 2])
    return fail("matrices " + to_string(x) + " and " + to_string(y) + " cannot be multiplied");
  SIBYL_TRY(Shape shape, broadcast({x.begin(), x.end() - 2}, {y.begin(), y.end() - 2}));
  shape.push_back(x[x.size() - 2]);
  shape.push_back(y.back());
  Operand result = steps.add(MatMul{}, {steps.reshape(a, x), steps.reshape(b, y)}, shape);
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return steps.reshape(result, shape);
}

Result<Lowering> mat_mul(const Node& node) {
  Steps steps(node);
  SIBYL_TRY(Operand product, matmul(steps, steps.input(0), steps.input(1)));
  return std::move(steps).result(product);
}

Result<Lowering> fused_mat_mul(const Node& node) {
  if (node.integer("transBatchA", 0) != 0 || node.integer("transBatchB", 0) != 0)
    return unsupported("transBatchA or transBatchB");
  Steps steps(node);
  Operand a = steps.input(0), b = steps.input(1);
  if (node.integer("transA", 0) != 0) a = steps.transpose(a, swap_last_two(node.shape(0).size()));
  if (node.integer("transB", 0) != 0) b = steps.transpose(b, swap_last_two(node.shape(1).size()));
  SIBYL_TRY(Operand y, matmul(steps, a, b));
  const double alpha = node.number("alpha", 1.0);
  if (alpha != 1.0) {
    SIBYL_TRY(y, steps.binary(BinaryKind::mul, y, steps.scalar(alpha, node.dtype(0))));
  }
  return std::move(steps).result(y);
}

// alpha a' b' + beta c. What torch exports for nn.Linear is a Linear; the rest is written out.
Result<Lowering> gemm(const Node& node) {
  if (node.rank(0) != 2 || node.rank(1) != 2)
    return fail("Gemm multiplies matrices; its operands are " + to_string(node.shape(0)) + " and " +
                to_string(node.shape(1)));
  const double alpha = node.number("alpha", 1.0), beta = node.number("beta", 1.0);
  const bool trans_b = node.integer("transB", 0) != 0;
  Steps steps(node);
  const Operand a = node.integer("transA", 0) != 0 ? steps.transpose(steps.input(0), {1, 0}) : steps.input(0);
  const Shape &x = steps.fact(a).shape, &w = node.shape(1);
  const std::int64_t n = w[trans_b ? 0 : 1];
  if (x[1] != w[trans_b ? 1 : 0])
    return fail("matrices " + to_string(x) + " and " + to_string(w) + " cannot be multiplied");
  const Shape y{x[0], n};
  const bool adds = node.has(2) && beta != 0.0 && !node.is_zero(2);
  const bool bias = adds && node.shape(2) == Shape{n} && beta == 1.0 && alpha == 1.0;
  Operand result;
  if (node.is_weight(1)) {
    std::vector<Operand> operands{a, steps.input(1)};
    if (bias) operands.push_back(steps.input(2));
    result = steps.add(Linear{!trans_b}, std::move(operands), y);
  } else {
    const Operand b = trans_b ? steps.transpose(steps.input(1), {1, 0}) : steps.input(1);
    result = steps.add(MatMul{}, {a, b}, y);
  }
  if (alpha != 1.0) {
    SIBYL_TRY(result, steps.binary(BinaryKind::mul, result, steps.scalar(alpha, node.dtype(0))));
  }
  if (adds && !(bias && node.is_weight(1))) {
    Operand c = steps.input(2);
    if (beta != 1.0) {
      SIBYL_TRY(c, steps.binary(BinaryKind::mul, c, steps.scalar(beta, node.dtype(0))));
    }
    SIBYL_TRY(result, steps.binary(BinaryKind::add, result, c));
    if (steps.fact(result).shape != y)
      return fail("the third operand " + to_string(node.shape(2)) + " does not broadcast to the product");
  }
  return std::move(steps).result(result);
}

}  // namespace

std::span<const Operator> matrix_operators() {
  static constexpr Operator table[] = {
      {"MatMul", mat_mul, 2},
      {"Gemm", gemm, 2},
      {"Einsum", einsum, 1},
      {"FusedMatMul", fused_mat_mul, 2, "com.microsoft"},
      {"TransposeMatMul", fused_mat_mul, 2, "com.microsoft"},
  };
  return table;
}

}  // namespace sibyl::onnx_import
