// Small graphs for tests, written as exporters write them: one call per node, shapes inferred for the few
// operations that tests need.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/graph.h"

namespace sibyl::test {

class GraphBuilder {
 public:
  Graph graph;

  TensorId input(Shape shape, DType dtype = DType::f32) {
    Tensor t = tensor("x", std::move(shape), TensorKind::input);
    t.dtype = dtype;
    t.batch_axis = 0;
    return graph.add(std::move(t));
  }
  TensorId parameter(Shape shape) { return graph.add(tensor("w", std::move(shape), TensorKind::parameter)); }
  TensorId buffer(Shape shape, DType dtype = DType::f32) {
    Tensor t = tensor("b", std::move(shape), TensorKind::buffer);
    t.dtype = dtype;
    return graph.add(std::move(t));
  }
  TensorId constant(double value) {
    Tensor t = tensor("c", {}, TensorKind::buffer);
    t.values = {value};
    return graph.add(std::move(t));
  }

  // Any operation with one result of the given shape.
  TensorId op(Attributes attributes, std::vector<TensorId> inputs, Shape shape) {
    Tensor y = tensor(std::string(name_of(attributes)), std::move(shape), TensorKind::activation);
    y.dtype = DType::f32;
    for (const TensorId in : inputs)
      if (in.valid() && graph[in].batch_axis && !y.batch_axis && !y.shape.empty()) y.batch_axis = 0;
    const TensorId out = graph.add(std::move(y));
    graph.add(Operation{graph[out].name, std::move(attributes), std::move(inputs), {out}, {}});
    return out;
  }

  TensorId unary(UnaryKind kind, TensorId x, double alpha = 0, double beta = 0) {
    return op(Unary{kind, alpha, beta}, {x}, graph[x].shape);
  }
  TensorId binary(BinaryKind kind, TensorId a, TensorId b) {
    const Shape& p = graph[a].shape;
    const Shape& q = graph[b].shape;
    Shape shape(std::max(p.size(), q.size()), 1);
    for (std::size_t i = 0; i < shape.size(); ++i) {  // from the back
      const std::int64_t m = i < p.size() ? p[p.size() - 1 - i] : 1, n = i < q.size() ? q[q.size() - 1 - i] : 1;
      shape[shape.size() - 1 - i] = std::max(m, n);
    }
    return op(Binary{kind}, {a, b}, shape);
  }
  TensorId add(TensorId a, TensorId b) { return binary(BinaryKind::add, a, b); }
  TensorId sub(TensorId a, TensorId b) { return binary(BinaryKind::sub, a, b); }
  TensorId mul(TensorId a, TensorId b) { return binary(BinaryKind::mul, a, b); }
  TensorId div(TensorId a, TensorId b) { return binary(BinaryKind::div, a, b); }
  TensorId mul(TensorId a, double c) { return mul(a, constant(c)); }
  TensorId div(TensorId a, double c) { return div(a, constant(c)); }
  TensorId add(TensorId a, double c) { return add(a, constant(c)); }
  TensorId pow(TensorId a, double c) { return binary(BinaryKind::pow, a, constant(c)); }
  TensorId matmul(TensorId a, TensorId b) {
    Shape shape = graph[a].shape;
    shape.back() = graph[b].shape.back();
    return op(MatMul{}, {a, b}, shape);
  }
  TensorId transpose(TensorId x, Ints permutation) {
    Shape shape;
    for (const std::int64_t axis : permutation) shape.push_back(graph[x].shape[static_cast<std::size_t>(axis)]);
    return op(Transpose{std::move(permutation)}, {x}, shape);
  }
  TensorId reshape(TensorId x, Shape shape) { return op(Reshape{}, {x}, std::move(shape)); }
  TensorId mean_last(TensorId x) {
    Shape shape = graph[x].shape;
    const auto axis = static_cast<std::int64_t>(shape.size()) - 1;
    shape.back() = 1;
    return op(Reduce{ReduceKind::mean, {axis}, true}, {x}, shape);
  }
  TensorId softmax(TensorId x) { return op(Softmax{-1, false}, {x}, graph[x].shape); }

  // The finished graph; `outputs` empty leaves them to be found.
  Graph finish(std::vector<TensorId> outputs = {}, std::int64_t batch = 2) {
    graph.outputs = std::move(outputs);
    const auto finished = graph.finish(batch);
    EXPECT_TRUE(finished) << to_string(finished.error());
    return graph;
  }

 private:
  Tensor tensor(const std::string& stem, Shape shape, TensorKind kind) {
    Tensor t;
    t.name = stem + std::to_string(count_++);
    t.shape = std::move(shape);
    t.kind = kind;
    return t;
  }
  int count_ = 0;
};

// "unary(kind=gelu)" and so on, in the order they run.
inline std::vector<std::string> operations_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Operation& op : graph.operations()) names.push_back(to_string(op.attributes));
  return names;
}

}  // namespace sibyl::test
