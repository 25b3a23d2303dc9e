// What the rewrites share in recognising patterns.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "models/canonical/editor.h"

namespace sibyl {

// Constants in files are rounded (to f32, to f16, to four digits by hand).
bool near(double value, double expected);

// The value of a scalar constant, also where a few operations compute it from constants (1 / sqrt(64)).
std::optional<double> scalar_value(const Editor& editor, TensorId id);

// True if nothing but constants (no input, no parameter) goes into the tensor.
bool is_constant(const Editor& editor, TensorId id);

// True if only constants and stored tensors go into it, moved, cast or combined elementwise: a table such as a mask, or
// a parameter.
bool is_stored(const Editor& editor, TensorId id);

// The other operand of a two-operand operation.
TensorId other_operand(const Operation& operation, TensorId id);

// True if a transposition of x only moves axes of one element: the elements keep their order, at any batch.
bool keeps_order(const Tensor& x, const Ints& permutation);

const Unary* unary(const Editor& editor, TensorId id, UnaryKind kind);  // the producer, if it is of that kind
const Binary* binary(const Editor& editor, TensorId id, BinaryKind kind);

// A polynomial in x and g: {{i, j}, c} is the term c x^i g^j.
using Polynomial = std::map<std::pair<int, int>, double>;
bool near(const Polynomial& value, const Polynomial& expected);

// `t` as a polynomial in x and g (either may be invalid), where additions, products, integer powers and affine steps
// make it; `used` gains the operations that do.
std::optional<Polynomial> as_polynomial(const Editor& editor, TensorId t, TensorId x, TensorId g,
                                        std::vector<OperationId>& used, int depth = 8);
// Tensors that `t` might be a polynomial of: itself and what lies behind such operations.
std::vector<TensorId> polynomial_sources(const Editor& editor, TensorId t, int depth = 6);

}  // namespace sibyl
