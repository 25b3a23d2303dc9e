#include "models/onnx/evaluate.h"

#include <algorithm>
#include <cmath>

namespace sibyl::onnx_import {
namespace {

// The offset, in an operand that broadcasts to `shape`, of the element at `index`.
std::int64_t broadcast_offset(const Index& index, const Shape& operand) {
  std::int64_t offset = 0;
  const std::size_t skip = index.size() - operand.size();
  for (std::size_t i = 0; i < operand.size(); ++i)
    offset = offset * operand[i] + (operand[i] == 1 ? 0 : index[skip + i]);
  return offset;
}

double at(const Fact& fact, const Index& index) {
  return (*fact.values)[static_cast<std::size_t>(broadcast_offset(index, fact.shape))];
}

double compute(BinaryKind kind, double a, double b, bool integers) {
  switch (kind) {
    case BinaryKind::add: return a + b;
    case BinaryKind::sub: return a - b;
    case BinaryKind::mul: return a * b;
    case BinaryKind::div: return integers ? (b == 0 ? 0 : std::trunc(a / b)) : a / b;
    case BinaryKind::pow: return std::pow(a, b);
    case BinaryKind::min: return std::min(a, b);
    case BinaryKind::max: return std::max(a, b);
    case BinaryKind::mod: return b == 0 ? 0 : integers ? a - std::floor(a / b) * b : std::fmod(a, b);
    case BinaryKind::equal: return a == b ? 1 : 0;
    case BinaryKind::less: return a < b ? 1 : 0;
    case BinaryKind::less_equal: return a <= b ? 1 : 0;
    case BinaryKind::greater: return a > b ? 1 : 0;
    case BinaryKind::greater_equal: return a >= b ? 1 : 0;
    case BinaryKind::logical_and: return a != 0 && b != 0 ? 1 : 0;
    case BinaryKind::logical_or: return a != 0 || b != 0 ? 1 : 0;
  }
  return 0;
}

// Those that shape arithmetic and scalar factors use; others stay unknown.
std::optional<double> compute(UnaryKind kind, double x, double alpha, double beta) {
  switch (kind) {
    case UnaryKind::relu: return std::max(x, 0.0);
    case UnaryKind::clip: return std::clamp(x, alpha, std::max(alpha, beta));
    case UnaryKind::sqrt: return std::sqrt(x);
    case UnaryKind::reciprocal: return 1.0 / x;
    case UnaryKind::exp: return std::exp(x);
    case UnaryKind::log: return std::log(x);
    case UnaryKind::abs: return std::abs(x);
    case UnaryKind::neg: return -x;
    case UnaryKind::sin: return std::sin(x);
    case UnaryKind::cos: return std::cos(x);
    case UnaryKind::floor: return std::floor(x);
    case UnaryKind::ceil: return std::ceil(x);
    case UnaryKind::round: return std::nearbyint(x);
    case UnaryKind::sign: return x > 0 ? 1 : x < 0 ? -1 : 0;
    case UnaryKind::logical_not: return x == 0 ? 1 : 0;
    default: return std::nullopt;
  }
}

}  // namespace

bool is_small(const Shape& shape) { return is_sane(shape) && element_count(shape) <= max_known_values; }

void for_each_index(const Shape& shape, const std::function<void(const Index&)>& visit) {
  if (element_count(shape) == 0) return;
  Index index(shape.size(), 0);
  while (true) {
    visit(index);
    std::size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

std::int64_t offset_of(const Index& index, const Shape& shape) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + index[i];
  return offset;
}

KnownValues apply(UnaryKind kind, double alpha, double beta, const Fact& x) {
  if (!x.values) return nullptr;
  auto result = std::make_shared<Values>();
  for (const double value : *x.values) {
    const auto y = compute(kind, value, alpha, beta);
    if (!y) return nullptr;
    result->push_back(*y);
  }
  return result;
}

KnownValues apply(BinaryKind kind, const Fact& a, const Fact& b, const Shape& result) {
  if (!a.values || !b.values || !is_small(result)) return nullptr;
  auto values = std::make_shared<Values>();
  const bool integers = !is_floating(a.dtype);
  for_each_index(result,
                 [&](const Index& index) { values->push_back(compute(kind, at(a, index), at(b, index), integers)); });
  return values;
}

KnownValues select(const Fact& condition, const Fact& a, const Fact& b, const Shape& result) {
  if (!condition.values || !a.values || !b.values || !is_small(result)) return nullptr;
  auto values = std::make_shared<Values>();
  for_each_index(
      result, [&](const Index& index) { values->push_back(at(condition, index) != 0 ? at(a, index) : at(b, index)); });
  return values;
}

KnownValues convert(const Fact& x, DType to) {
  if (!x.values || is_floating(to)) return x.values;
  auto values = std::make_shared<Values>(*x.values);
  for (double& value : *values)
    value = to == DType::boolean ? (value != 0 ? 1 : 0) : std::isnan(value) ? 0 : std::trunc(value);
  return values;
}

Fact first_of_equal(const Fact& x, std::size_t axis) {
  Fact first{x.dtype, x.shape, {}};
  first.shape[axis] = 1;
  first.values = rearranged(x, first.shape, [](const Index& index) { return index; });
  if (!first.values) return x;
  const KnownValues repeated = rearranged(first, x.shape, [axis](Index index) {
    index[axis] = 0;
    return index;
  });
  return repeated && *repeated == *x.values ? first : x;
}

KnownValues filled(const Shape& shape, double value) {
  if (!is_small(shape)) return nullptr;
  return std::make_shared<Values>(static_cast<std::size_t>(element_count(shape)), value);
}

KnownValues rearranged(const Fact& x, const Shape& result, const std::function<Index(const Index&)>& source) {
  if (!x.values || !is_small(result)) return nullptr;
  auto values = std::make_shared<Values>();
  for_each_index(result, [&](const Index& index) {
    values->push_back((*x.values)[static_cast<std::size_t>(offset_of(source(index), x.shape))]);
  });
  return values;
}

}  // namespace sibyl::onnx_import
