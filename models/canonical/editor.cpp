#include "models/canonical/editor.h"

#include <algorithm>

namespace sibyl {
namespace {

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

Editor::Editor(const Graph& graph)
    : outputs(graph.outputs),
      loss(graph.loss),
      assumed(graph.assumed),
      name_(graph.name),
      batch_(graph.batch()),
      tensors_(graph.tensors().begin(), graph.tensors().end()),
      operations_(graph.operations().begin(), graph.operations().end()),
      alive_(operations_.size(), true),
      place_(operations_.size()),
      producers_(tensors_.size()),
      consumers_(tensors_.size()) {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    place_[i] = static_cast<double>(i);
    link(OperationId{i});
  }
  if (outputs.empty())
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      if (producers_[t].valid() && consumers_[t].empty()) outputs.emplace_back(t);
}

std::vector<OperationId> Editor::order() const {
  std::vector<OperationId> ids;
  for (std::size_t i = 0; i < operations_.size(); ++i)
    if (alive_[i]) ids.emplace_back(i);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](OperationId a, OperationId b) { return place_[a.index()] < place_[b.index()]; });
  return ids;
}

OperationId Editor::producer(TensorId id) const { return id.valid() ? producers_[id.index()] : OperationId{}; }

bool Editor::is_output(TensorId id) const { return contains(outputs, id) || id == loss; }

OperationId Editor::sole_consumer(TensorId id) const {
  const auto& users = consumers_[id.index()];
  return users.size() == 1 && !is_output(id) ? users.front() : OperationId{};
}

TensorId Editor::add(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  producers_.emplace_back();
  consumers_.emplace_back();
  return TensorId{tensors_.size() - 1};
}

OperationId Editor::add(Operation operation, double place) {
  operations_.push_back(std::move(operation));
  alive_.push_back(true);
  place_.push_back(place);
  const OperationId id{operations_.size() - 1};
  link(id);
  return id;
}

OperationId Editor::append(Operation operation) {
  return add(std::move(operation), static_cast<double>(operations_.size()));
}

OperationId Editor::insert_before(OperationId place, Operation operation) {
  return add(std::move(operation), place_[place.index()] - 0.5);
}

TensorId Editor::insert_before(OperationId place, Attributes attributes, std::vector<TensorId> inputs, Tensor result) {
  result.kind = TensorKind::activation;
  result.values.clear();
  const std::string name = result.name;
  const TensorId out = add(std::move(result));
  insert_before(place, Operation{name, std::move(attributes), std::move(inputs), {out}, {}});
  return out;
}

bool Editor::fuse(OperationId root, std::vector<OperationId> absorbed, Attributes attributes,
                  std::vector<TensorId> inputs) {
  absorbed.push_back(root);
  std::sort(absorbed.begin(), absorbed.end(),
            [&](OperationId a, OperationId b) { return place_[a.index()] < place_[b.index()]; });
  absorbed.erase(std::unique(absorbed.begin(), absorbed.end()), absorbed.end());
  for (const OperationId id : absorbed) {
    if (id == root) continue;
    for (const TensorId out : operations_[id.index()].outputs) {
      if (!out.valid()) continue;
      if (is_output(out) || contains(inputs, out)) return false;
      for (const OperationId user : consumers_[out.index()])
        if (!contains(absorbed, user)) return false;
    }
  }

  Operation replacement{
      operations_[root.index()].name, std::move(attributes), std::move(inputs), operations_[root.index()].outputs, {}};
  for (const OperationId id : absorbed) {
    const Operation& old = operations_[id.index()];
    if (old.fused.empty())
      replacement.fused.push_back(old.name);
    else
      replacement.fused.insert(replacement.fused.end(), old.fused.begin(), old.fused.end());
    unlink(id);
    alive_[id.index()] = false;
  }
  if (replacement.fused.size() == 1) replacement.fused.clear();
  operations_[root.index()] = std::move(replacement);
  alive_[root.index()] = true;
  link(root);
  return true;
}

void Editor::rename(OperationId id, std::string name) { operations_[id.index()].name = std::move(name); }

void Editor::hand_over_fused(OperationId from, OperationId to) {
  operations_[to.index()].fused = std::move(operations_[from.index()].fused);
  operations_[from.index()].fused.clear();
}

void Editor::redirect(TensorId from, TensorId to) {
  const std::vector<OperationId> users = consumers_[from.index()];
  for (const OperationId user : users) {
    unlink(user);
    for (TensorId& in : operations_[user.index()].inputs)
      if (in == from) in = to;
    link(user);
  }
  std::replace(outputs.begin(), outputs.end(), from, to);
  if (loss == from) loss = to;
}

void Editor::remove_unused() {
  std::vector<OperationId> ids = order();
  std::reverse(ids.begin(), ids.end());
  for (const OperationId id : ids) {
    const auto& results = operations_[id.index()].outputs;
    const bool used = std::any_of(results.begin(), results.end(), [&](TensorId out) {
      return out.valid() && (!consumers_[out.index()].empty() || is_output(out));
    });
    if (used) continue;
    unlink(id);
    alive_[id.index()] = false;
  }
}

void Editor::link(OperationId id) {
  for (const TensorId out : operations_[id.index()].outputs)
    if (out.valid()) producers_[out.index()] = id;
  for (const TensorId in : operations_[id.index()].inputs)
    if (in.valid() && !contains(consumers_[in.index()], id)) consumers_[in.index()].push_back(id);
}

void Editor::unlink(OperationId id) {
  for (const TensorId out : operations_[id.index()].outputs)
    if (out.valid()) producers_[out.index()] = OperationId{};
  for (const TensorId in : operations_[id.index()].inputs)
    if (in.valid()) std::erase(consumers_[in.index()], id);
}

Result<Graph> Editor::finish() const {
  std::vector<bool> needed(operations_.size());
  std::vector<TensorId> pending = outputs;
  pending.push_back(loss);
  while (!pending.empty()) {
    const OperationId op = producer(pending.back());
    pending.pop_back();
    if (!op.valid() || needed[op.index()]) continue;
    needed[op.index()] = true;
    pending.insert(pending.end(), operations_[op.index()].inputs.begin(), operations_[op.index()].inputs.end());
  }

  std::vector<bool> used(tensors_.size());
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (!needed[i]) continue;
    for (const auto* ids : {&operations_[i].inputs, &operations_[i].outputs})
      for (const TensorId id : *ids)
        if (id.valid()) used[id.index()] = true;
  }
  for (const TensorId id : outputs) used[id.index()] = true;

  Graph graph;
  graph.name = name_;
  std::vector<TensorId> renamed(tensors_.size());
  for (std::size_t t = 0; t < tensors_.size(); ++t)
    if (used[t]) renamed[t] = graph.add(tensors_[t]);
  auto rename = [&](TensorId id) { return id.valid() ? renamed[id.index()] : id; };
  for (const OperationId id : order()) {
    if (!needed[id.index()]) continue;
    Operation operation = operations_[id.index()];
    std::transform(operation.inputs.begin(), operation.inputs.end(), operation.inputs.begin(), rename);
    std::transform(operation.outputs.begin(), operation.outputs.end(), operation.outputs.begin(), rename);
    graph.add(std::move(operation));
  }
  for (const TensorId id : outputs) graph.outputs.push_back(rename(id));
  graph.loss = rename(loss);
  graph.assumed = assumed;
  SIBYL_CHECK(graph.finish(batch_));
  return graph;
}

}  // namespace sibyl
