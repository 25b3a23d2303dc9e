// Small graphs that tests build by hand.
#pragma once

#include <string>
#include <vector>

#include "models/graph.h"

namespace sibyl::test {

// A multi-layer perceptron: features -> hidden -> … -> classes, ReLU between, cross-entropy at the end. `widths` has the
// extents {features, hidden…, classes}. Batch `batch`.
inline Graph mlp(const std::vector<std::int64_t>& widths, std::int64_t batch) {
  Graph graph;
  graph.name = "mlp";
  const auto activation = [&](std::string name, Shape shape) {
    return graph.add(Tensor{std::move(name), std::move(shape), DType::f32, TensorKind::activation, 0, {}, 0});
  };
  TensorId x = graph.add(Tensor{"x", {batch, widths.front()}, DType::f32, TensorKind::input, 0, {}, 0});
  for (std::size_t i = 1; i < widths.size(); ++i) {
    const std::string layer = "fc" + std::to_string(i);
    const TensorId weight = graph.add(
        Tensor{layer + ".weight", {widths[i], widths[i - 1]}, DType::f32, TensorKind::parameter, {}, {}, 0});
    const TensorId bias = graph.add(Tensor{layer + ".bias", {widths[i]}, DType::f32, TensorKind::parameter, {}, {}, 0});
    const TensorId y = activation(layer + ".y", {batch, widths[i]});
    graph.add(Operation{layer, Linear{}, {x, weight, bias}, {y}, {}});
    x = y;
    if (i + 1 == widths.size()) break;
    const TensorId r = activation(layer + ".relu", {batch, widths[i]});
    graph.add(Operation{layer + ".relu", Unary{UnaryKind::relu}, {x}, {r}, {}});
    x = r;
  }
  const TensorId targets =
      graph.add(Tensor{"targets", {batch}, DType::i64, TensorKind::input, 0, {}, widths.back()});
  graph.loss = graph.add(Tensor{"loss", {}, DType::f32, TensorKind::activation, {}, {}, 0});
  graph.add(Operation{"loss", CrossEntropy{1}, {x, targets}, {graph.loss}, {}});
  if (!graph.finish(batch)) return Graph{};
  return graph;
}

}  // namespace sibyl::test
