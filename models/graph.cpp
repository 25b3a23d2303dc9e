#include "models/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>

namespace sibyl {

TensorId Graph::add(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return TensorId{tensors_.size() - 1};
}

OperationId Graph::add(Operation operation) {
  operations_.push_back(std::move(operation));
  return OperationId{operations_.size() - 1};
}

namespace {

// Kahn's algorithm taking the lowest index that is ready, so that independent operations keep the file's order.
// Shorter than `operations` when there is a cycle.
std::vector<std::size_t> topological_order(const Graph::Dependencies& dependencies) {
  const std::size_t n = boost::num_vertices(dependencies);
  std::vector<std::size_t> waiting(n), order;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t v = 0; v < n; ++v) {
    waiting[v] = boost::in_degree(v, dependencies);
    if (waiting[v] == 0) ready.push(v);
  }
  while (!ready.empty()) {
    const std::size_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (auto [edge, end] = boost::out_edges(v, dependencies); edge != end; ++edge)
      if (--waiting[boost::target(*edge, dependencies)] == 0) ready.push(boost::target(*edge, dependencies));
  }
  return order;
}

struct Links {
  std::vector<OperationId> producers;
  Graph::Dependencies dependencies;
};

Result<Links> link(std::span<const Tensor> tensors, std::span<const Operation> operations) {
  Links links{std::vector<OperationId>(tensors.size()), Graph::Dependencies(operations.size())};
  for (std::size_t i = 0; i < operations.size(); ++i)
    for (const TensorId out : operations[i].outputs) {
      if (!out.valid()) continue;
      OperationId& producer = links.producers[out.index()];
      if (producer.valid())
        return fail(fmt::format("tensor '{}' is produced twice", tensors[out.index()].name), operations[i].name);
      producer = OperationId{i};
    }
  for (std::size_t i = 0; i < operations.size(); ++i)
    for (const TensorId in : operations[i].inputs) {
      if (!in.valid()) continue;
      const OperationId producer = links.producers[in.index()];
      if (producer.valid())
        boost::add_edge(producer.index(), i, links.dependencies);
      else if (tensors[in.index()].kind == TensorKind::activation)
        return fail(fmt::format("nothing produces tensor '{}'", tensors[in.index()].name), operations[i].name);
    }
  return links;
}

}  // namespace

Result<void> Graph::finish(std::int64_t batch) {
  batch_ = batch;
  SIBYL_TRY(Links links, link(tensors_, operations_));
  const std::vector<std::size_t> order = topological_order(links.dependencies);
  if (order.size() != operations_.size()) {
    std::vector<bool> placed(operations_.size());
    for (const std::size_t v : order) placed[v] = true;
    const auto stuck = std::find(placed.begin(), placed.end(), false) - placed.begin();
    return fail("the operations depend on each other in a cycle", operations_[static_cast<std::size_t>(stuck)].name);
  }
  std::vector<Operation> sorted;
  sorted.reserve(order.size());
  for (const std::size_t v : order) sorted.push_back(std::move(operations_[v]));
  operations_ = std::move(sorted);
  SIBYL_TRY(links, link(tensors_, operations_));
  producers_ = std::move(links.producers);
  dependencies_ = links.dependencies;  // Boost.Graph copies

  consumers_.assign(tensors_.size(), {});
  requires_gradient_.assign(tensors_.size(), false);
  for (std::size_t t = 0; t < tensors_.size(); ++t)
    requires_gradient_[t] = tensors_[t].kind == TensorKind::parameter && is_floating(tensors_[t].dtype);
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    bool needed = false;
    for (const TensorId in : operations_[i].inputs) {
      if (!in.valid()) continue;
      auto& users = consumers_[in.index()];
      if (users.empty() || users.back() != OperationId{i}) users.push_back(OperationId{i});
      needed = needed || requires_gradient_[in.index()];
    }
    for (const TensorId out : operations_[i].outputs)
      if (out.valid()) requires_gradient_[out.index()] = needed && is_floating(tensors_[out.index()].dtype);
  }
  return {};
}

std::int64_t Graph::parameter_count() const {
  std::int64_t count = 0;
  for (const Tensor& tensor : tensors_)
    if (tensor.kind == TensorKind::parameter) count += element_count(tensor.shape);
  return count;
}

Shape local_shape(const Graph& graph, TensorId id, std::int64_t batch) {
  const Tensor& tensor = graph[id];
  Shape shape = tensor.shape;
  if (tensor.batch_axis) shape[*tensor.batch_axis] = shape[*tensor.batch_axis] / graph.batch() * batch;
  return shape;
}

Signature signature(const Graph& graph, OperationId id, std::int64_t batch, DType dtype) {
  const Operation& operation = graph[id];
  Signature result{operation.attributes, {}, {}, dtype};
  for (const TensorId in : operation.inputs)
    result.inputs.push_back(in.valid() ? local_shape(graph, in, batch) : Shape{0});
  while (!result.inputs.empty() && !operation.inputs[result.inputs.size() - 1].valid()) result.inputs.pop_back();
  for (const TensorId out : operation.outputs)
    if (out.valid()) result.outputs.push_back(local_shape(graph, out, batch));
  return result;
}

}  // namespace sibyl
