// Reductions, softmaxes and what is made of them.
#include <map>
#include <set>

#include "models/onnx/evaluate.h"
#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

struct Plan {
  Ints axes;  // sorted, from the front
  bool keep = true;
  Shape shape;
};

Result<Plan> plan_of(const Node& node, Ints axes) {
  Plan plan{{}, node.integer("keepdims", 1) != 0, {}};
  std::set<std::size_t> chosen;
  for (const std::int64_t axis : axes) {
    SIBYL_TRY(const std::size_t front, node.front_axis(axis));
    chosen.insert(front);
  }
  for (std::size_t i = 0; i < node.shape(0).size(); ++i) {
    if (!chosen.contains(i)) plan.shape.push_back(node.shape(0)[i]);
    if (chosen.contains(i) && plan.keep) plan.shape.push_back(1);
  }
  for (const std::size_t axis : chosen) plan.axes.push_back(static_cast<std::int64_t>(axis));
  return plan;
}

// Elements of a small reduction: sums, products and extremes of shapes.
KnownValues fold(const Node& node, const Plan& plan, ReduceKind kind) {
  static const std::map<ReduceKind, BinaryKind> folds = {{ReduceKind::sum, BinaryKind::add},
                                                         {ReduceKind::prod, BinaryKind::mul},
                                                         {ReduceKind::max, BinaryKind::max},
                                                         {ReduceKind::min, BinaryKind::min}};
  const Fact& x = node.fact(0);
  if (!x.values || x.values->empty() || !folds.contains(kind) || plan.axes.size() != x.shape.size()) return nullptr;
  Fact total{x.dtype, {}, filled({}, x.values->front())};
  for (std::size_t i = 1; i < x.values->size(); ++i)
    total.values = apply(folds.at(kind), total, Fact{x.dtype, {}, filled({}, (*x.values)[i])}, {});
  return total.values;
}

Result<Lowering> reduce(const Node& node) {
  static const std::map<std::string_view, ReduceKind> kinds = {
      {"ReduceSum", ReduceKind::sum},      {"ReduceMean", ReduceKind::mean},     {"ReduceMax", ReduceKind::max},
      {"ReduceMin", ReduceKind::min},      {"ReduceProd", ReduceKind::prod},     {"ReduceL1", ReduceKind::l1},
      {"ReduceL2", ReduceKind::l2},        {"ReduceSumSquare", ReduceKind::sum}, {"ReduceLogSum", ReduceKind::sum},
      {"ReduceLogSumExp", ReduceKind::sum}};
  const std::string_view name = node.op_type();
  const ReduceKind kind = kinds.at(name);
  SIBYL_TRY(auto axes, node.listed("axes", 1));
  if ((!axes || axes->empty()) && node.integer("noop_with_empty_axes", 0) != 0) return same_as(0, node);
  if (!axes || axes->empty()) {
    axes.emplace();
    for (std::int64_t i = 0; i < node.rank(0); ++i) axes->push_back(i);
  }
  SIBYL_TRY(Plan plan, plan_of(node, *axes));
  Steps steps(node);
  Operand x = steps.input(0);
  if (name == "ReduceSumSquare") x = steps.add(Unary{UnaryKind::pow, 2.0}, {x}, node.shape(0));
  if (name == "ReduceLogSumExp") x = steps.add(Unary{UnaryKind::exp}, {x}, node.shape(0));
  x = steps.add(Reduce{kind, plan.axes, plan.keep}, {x}, plan.shape);
  if (name.starts_with("ReduceLogSum")) x = steps.add(Unary{UnaryKind::log}, {x}, plan.shape);
  Lowering lowering = std::move(steps).result(x);
  if (lowering.steps.size() == 1) lowering.outputs[0].values = fold(node, plan, kind);
  return lowering;
}

Result<Lowering> arg_extreme(const Node& node) {
  SIBYL_TRY(Plan plan, plan_of(node, {node.integer("axis", 0)}));
  const ReduceKind kind = node.op_type() == "ArgMax" ? ReduceKind::argmax : ReduceKind::argmin;
  return single(node, Reduce{kind, plan.axes, plan.keep}, {0}, plan.shape, DType::i64);
}

// Before opset 13 the operand is flattened to a matrix at `axis` first; that only matters when axes follow it.
Result<Lowering> softmax(const Node& node) {
  const bool flattens = node.opset() < 13;
  const Shape& x = node.shape(0);
  SIBYL_TRY(const std::size_t axis, node.front_axis(node.integer("axis", flattens && node.rank(0) > 1 ? 1 : -1)));
  const Softmax attributes{static_cast<std::int64_t>(axis), node.op_type() == "LogSoftmax"};
  const bool last = axis + 1 >= x.size() || product(std::span(x).subspan(axis + 1)) == 1;
  if (!flattens || last) return single(node, attributes, {0}, x, node.dtype(0));
  Steps steps(node);
  const Shape matrix{product(std::span(x).first(axis)), product(std::span(x).subspan(axis))};
  Operand y = steps.reshape(steps.input(0), matrix);
  y = steps.add(Softmax{1, attributes.log}, {y}, matrix);
  return std::move(steps).result(steps.reshape(y, x));
}

}  // namespace

std::span<const Operator> reduction_operators() {
  static constexpr Operator table[] = {
      {"ReduceSum", reduce},    {"ReduceMean", reduce},      {"ReduceMax", reduce},   {"ReduceMin", reduce},
      {"ReduceProd", reduce},   {"ReduceL1", reduce},        {"ReduceL2", reduce},    {"ReduceSumSquare", reduce},
      {"ReduceLogSum", reduce}, {"ReduceLogSumExp", reduce}, {"ArgMax", arg_extreme}, {"ArgMin", arg_extreme},
      {"Softmax", softmax},     {"LogSoftmax", softmax},
  };
  return table;
}

}  // namespace sibyl::onnx_import
