// Elements of small constants: enough to follow the integer arithmetic that exporters write for shapes, masks and
// positions. Every function returns null where an operand's elements are not known or the result is too large to keep.
#pragma once

#include <functional>

#include "models/onnx/fact.h"
#include "models/operations/operations.h"

namespace sibyl::onnx_import {

bool is_small(const Shape& shape);

KnownValues apply(UnaryKind kind, double alpha, double beta, const Fact& x);
KnownValues apply(BinaryKind kind, const Fact& a, const Fact& b, const Shape& result);
KnownValues select(const Fact& condition, const Fact& a, const Fact& b, const Shape& result);
KnownValues convert(const Fact& x, DType to);
KnownValues filled(const Shape& shape, double value);

// Element i of the result is element source(index of i) of x: transposes, slices, gathers.
using Index = std::vector<std::int64_t>;
KnownValues rearranged(const Fact& x, const Shape& result, const std::function<Index(const Index&)>& source);
// One element along the axis, where all are known and equal along it; else x itself.
Fact first_of_equal(const Fact& x, std::size_t axis);
// For each index of a shape, in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const Index&)>& visit);
std::int64_t offset_of(const Index& index, const Shape& shape);

}  // namespace sibyl::onnx_import
