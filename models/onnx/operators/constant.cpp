// Operators whose results are constants (of the file, of shapes, or of other constants), or masks made of such.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/onnx/evaluate.h"
#include "models/onnx/operators/families.h"
#include "models/onnx/own_file.h"

namespace sibyl::onnx_import {
namespace {

KnownValues known(Values values) { return std::make_shared<Values>(std::move(values)); }

KnownValues known(const Ints& values) { return known(Values(values.begin(), values.end())); }

Result<Lowering> constant_node(const Node& node) {
  if (const AttributeData* value = node.attribute("value")) {
    const auto* tensor = std::get_if<TensorData>(&value->value);
    if (tensor == nullptr) return fail("its value is not a tensor");
    if (!tensor->dtype) return unsupported("its value is of a type that does not train");
    return constant({*tensor->dtype, tensor->shape, tensor->values});
  }
  if (node.attribute("value_int"))
    return constant({DType::i64, {}, known(Values{static_cast<double>(node.integer("value_int", 0))})});
  if (node.attribute("value_float")) return constant({DType::f32, {}, known(Values{node.number("value_float", 0)})});
  if (const auto ints = node.integers("value_ints"))
    return constant({DType::i64, {static_cast<std::int64_t>(ints->size())}, known(*ints)});
  if (const AttributeData* floats = node.attribute("value_floats"))
    if (const auto* list = std::get_if<std::vector<double>>(&floats->value))
      return constant({DType::f32, {static_cast<std::int64_t>(list->size())}, known(*list)});
  return unsupported("a constant that is not a tensor of numbers");
}

Result<Lowering> shape_of(const Node& node) {
  const std::int64_t rank = node.rank(0);
  const auto clamp = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = clamp(node.integer("start", 0)), end = std::max(start, clamp(node.integer("end", rank)));
  const Shape& x = node.shape(0);
  return constant({DType::i64, {end - start}, known(Ints(x.begin() + start, x.begin() + end))});
}

Result<Lowering> size_of(const Node& node) {
  return constant({DType::i64, {}, known(Ints{element_count(node.shape(0))})});
}

Result<Lowering> constant_of_shape(const Node& node) {
  const auto shape = node.ints(0);
  if (!shape) return unsupported("its shape is computed while the model runs");
  if (!is_sane(*shape)) return fail("its shape [" + to_string(*shape) + "] is not one");
  DType type = DType::f32;
  KnownValues values = filled(*shape, 0.0);
  if (const AttributeData* value = node.attribute("value")) {
    const auto* tensor = std::get_if<TensorData>(&value->value);
    if (tensor == nullptr || !tensor->dtype) return unsupported("its value is not a number");
    type = *tensor->dtype;
    values = tensor->values && tensor->values->size() == 1 ? filled(*shape, tensor->values->front()) : nullptr;
  }
  return constant({type, *shape, values});
}

Result<Lowering> range(const Node& node) {
  const auto start = node.scalar(0), limit = node.scalar(1), delta = node.scalar(2);
  if (!start || !limit || !delta) return unsupported("its limits are computed while the model runs");
  const double count = std::max(0.0, std::ceil((*limit - *start) / *delta));
  if (!(count < 4e18)) return fail("it never ends");
  const Shape shape{static_cast<std::int64_t>(count)};
  KnownValues values;
  if (is_small(shape)) {
    Values list;
    for (std::int64_t i = 0; i < shape[0]; ++i) list.push_back(*start + static_cast<double>(i) * *delta);
    values = known(std::move(list));
  }
  return constant({node.dtype(0), shape, values});
}

// Ones on and below (or above) the k-th diagonal of the last two dimensions.
Fact triangle(const Shape& x, DType type, bool upper, std::int64_t k) {
  Fact mask{type, {x.end() - 2, x.end()}, {}};
  if (!is_small(mask.shape)) return mask;
  Values values;
  for_each_index(mask.shape, [&](const Index& at) {
    values.push_back((upper ? at[1] - at[0] >= k : at[1] - at[0] <= k) ? 1.0 : 0.0);
  });
  mask.values = known(std::move(values));
  return mask;
}

Result<Lowering> trilu(const Node& node) {
  if (node.rank(0) < 2) return fail("it needs a matrix, not " + to_string(node.shape(0)));
  const auto k = node.has(1) ? node.ints(1) : std::optional(Ints{0});
  if (!k || k->size() != 1) return unsupported("its diagonal is computed while the model runs");
  const Fact mask = triangle(node.shape(0), node.dtype(0), node.integer("upper", 1) != 0, k->front());
  Steps steps(node);
  SIBYL_TRY(const Operand y, steps.binary(BinaryKind::mul, steps.input(0), steps.constant(mask)));
  Lowering lowering = std::move(steps).result(y);
  // Elements outside the triangle are 0 even where x is infinite, so this is not apply(mul).
  if (node.fact(0).values && mask.values && is_small(node.shape(0)))
    lowering.outputs[0].values = select(mask, node.fact(0), Fact{node.dtype(0), {}, filled({}, 0.0)}, node.shape(0));
  return lowering;
}

Result<Lowering> eye_like(const Node& node) {
  if (node.rank(0) != 2) return fail("it needs a matrix, not " + to_string(node.shape(0)));
  return constant({node.dtype(0), node.shape(0), {}});
}

// Running sums of constants give positions.
Result<Lowering> cumulative_sum(const Node& node) {
  if (!node.is_constant(0)) return from_own_file<RunningSum>(node);
  SIBYL_TRY(const RunningSum sum, RunningSum::from(node));
  const auto axis = static_cast<std::size_t>(sum.axis);
  Fact result = node.fact(0);
  if (result.values && !sum.exclusive && !sum.reverse) {
    auto sums = std::make_shared<Values>(*result.values);
    for_each_index(result.shape, [&](Index index) {
      if (index[axis] == 0) return;
      const auto here = static_cast<std::size_t>(offset_of(index, result.shape));
      --index[axis];
      (*sums)[here] += (*sums)[static_cast<std::size_t>(offset_of(index, result.shape))];
    });
    result.values = std::move(sums);
  } else {
    result.values = nullptr;
  }
  return constant(std::move(result));
}

// What is written is all there is: at any batch, or at the one that the tensor it is written into was made for.
bool writes_all(const Node& node) {
  const auto alike = [&](std::size_t side) { return node.fact_at(0, side).shape == node.fact_at(2, side).shape; };
  return alike(0) && (alike(1) || !node.batch_axis(0));
}

// Writing into parts of a tensor: into a constant (masks of windows that are shifted), or into a copy of one that takes
// no part in backward (a causal mask that also hides padding). What the parts become is little beside the copy; where
// they are all of it, they are what is copied.
Result<Lowering> scatter(const Node& node) {
  if (node.is_constant(0) && node.is_constant(1) && node.is_constant(2))
    return constant({node.dtype(0), node.shape(0), {}});
  if (node.needs_gradient(0) || node.needs_gradient(2))
    return unsupported("it writes into parts of a tensor that gradients go through");
  const std::size_t source = writes_all(node) ? 2 : 0;
  if (source == 0 && !node.is_constant(2) && (node.dtype(0) == DType::i64 || node.dtype(0) == DType::i32))
    return unsupported("it writes numbers into parts of a tensor, which may be a table's rows");
  return single(node, Copy{}, {source}, node.shape(source), node.dtype(0));
}

Result<Lowering> non_zero(const Node& node) {
  const Fact& x = node.fact(0);
  if (!x.values) return unsupported("the shape of its result depends on the data");
  std::vector<Index> found;
  for_each_index(x.shape, [&](const Index& index) {
    if ((*x.values)[static_cast<std::size_t>(offset_of(index, x.shape))] != 0) found.push_back(index);
  });
  Values values;
  for (std::size_t axis = 0; axis < x.shape.size(); ++axis)
    for (const Index& index : found) values.push_back(static_cast<double>(index[axis]));
  return constant({DType::i64, {node.rank(0), static_cast<std::int64_t>(found.size())}, known(std::move(values))});
}

}  // namespace

std::span<const Operator> constant_operators() {
  static constexpr Operator table[] = {
      {"Constant", constant_node, 0},
      {"Shape", shape_of},
      {"Size", size_of},
      {"ConstantOfShape", constant_of_shape},
      {"Range", range, 3},
      {"Trilu", trilu},
      {"EyeLike", eye_like},
      {"CumSum", cumulative_sum, 2},
      {"NonZero", non_zero},
      {"ScatterND", scatter, 3},
      {"ScatterElements", scatter, 3},
  };
  return table;
}

}  // namespace sibyl::onnx_import
