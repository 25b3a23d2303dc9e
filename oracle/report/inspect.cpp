#include <fmt/format.h>

#include <numeric>
#include <set>

#include "models/signature.h"
#include "models/training/products.h"
#include "oracle/report/inspection.h"

namespace sibyl {
namespace {

bool is_model_constant(TensorKind kind) { return kind == TensorKind::parameter || kind == TensorKind::buffer; }

std::uint32_t gradient_mask(const Graph& graph, const Operation& operation) {
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < operation.inputs.size() && i < 32; ++i)
    if (operation.inputs[i].valid() && graph.requires_gradient(operation.inputs[i])) mask |= std::uint32_t{1} << i;
  return mask;
}

struct Chosen {
  std::int64_t chosen = 1, experts = 1;
};

// How many experts the tokens go to on whose slots this operation works.
Chosen chosen_by(const Graph& graph, const Operation& grouped) {
  for (TensorId id = grouped.inputs[0]; graph.producer(id).valid();) {
    const Operation& producer = graph[graph.producer(id)];
    if (std::holds_alternative<Dispatch>(producer.attributes))
      return {graph[producer.inputs[1]].shape.back(), graph[producer.outputs[0]].shape.front()};
    id = producer.inputs[0];
  }
  return {};
}

void count_active(const Graph& graph, Inspection& result) {
  result.active_parameters = result.parameters;
  for (const Operation& operation : graph.operations()) {
    if (!std::holds_alternative<GroupedLinear>(operation.attributes)) continue;
    const Chosen of = chosen_by(graph, operation);
    if (of.chosen == of.experts) continue;
    if (result.chosen.empty()) result.chosen = fmt::format("{} of {} experts", of.chosen, of.experts);
    for (std::size_t i = 1; i < operation.inputs.size(); ++i)
      if (operation.inputs[i].valid() && graph[operation.inputs[i]].kind == TensorKind::parameter)
        result.active_parameters -=
            element_count(graph[operation.inputs[i]].shape) / of.experts * (of.experts - of.chosen);
  }
}

// Counts every kept tensor once, for the operation that computed it; a view is the tensor whose memory it shares. The
// model's inputs are counted for the operation that keeps them first.
class KeptTensors {
 public:
  KeptTensors(const Graph& graph, DType dtype)
      : graph_(graph), dtype_(dtype), owner_(graph.tensors().size()), bytes_(graph.operations().size()) {
    std::iota(owner_.begin(), owner_.end(), std::size_t{0});
  }

  void pass_memory_on(const Operation& view) {
    if (view.inputs.empty() || !view.inputs[0].valid()) return;
    for (const TensorId output : view.outputs) owner_[output.index()] = owner_[view.inputs[0].index()];
  }

  void keep(OperationId id, const std::vector<Saved>& saved) {
    const Operation& operation = graph_[id];
    for (const Saved& s : saved) {
      const auto& tensors = s.what == Saved::What::input ? operation.inputs : operation.outputs;
      if (s.what == Saved::What::extra)
        bytes_[id.index()] += s.bytes;
      else if (s.index < tensors.size() && tensors[s.index].valid())
        keep(id, TensorId{owner_[tensors[s.index].index()]});
    }
  }

  [[nodiscard]] Bytes of(OperationId id) const { return bytes_[id.index()]; }

 private:
  void keep(OperationId keeper, TensorId owner) {
    const Tensor& tensor = graph_[owner];
    if (is_model_constant(tensor.kind) || !kept_.insert(owner).second) return;
    const DType stored = tensor.dtype == DType::f32 ? dtype_ : tensor.dtype;
    const OperationId producer = graph_.producer(owner);
    bytes_[(producer.valid() ? producer : keeper).index()] +=
        Bytes{static_cast<double>(element_count(tensor.shape)) * size_in_bytes(stored)};
  }

  const Graph& graph_;
  DType dtype_;
  std::vector<std::size_t> owner_;
  std::set<TensorId> kept_;
  std::vector<Bytes> bytes_;
};

}  // namespace

Inspection inspect(const Import& import, std::string model, DType dtype, Backend backend) {
  const Graph& graph = import.graph;
  Inspection result;
  result.model = std::move(model);
  result.producer = import.producer;
  result.opset = import.opset;
  result.batch = graph.batch();
  result.parameters = graph.parameter_count();
  result.assumed = graph.assumed;
  result.unsupported = import.unsupported;
  result.unseen = import.unseen;
  result.untrained = graph.untrained;
  count_active(graph, result);
  for (const Tensor& tensor : graph.tensors())
    if (tensor.kind == TensorKind::parameter)
      result.parameter_bytes += Bytes{static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype)};
  KeptTensors kept(graph, dtype);
  std::set<TensorId> counted;  // a weight that several operations share belongs to the first
  for (std::size_t i = 0; i < graph.operations().size(); ++i) {
    const Operation& operation = graph.operations()[i];
    const std::uint32_t mask = gradient_mask(graph, operation);
    const Signature s = signature(graph, OperationId{i}, graph.batch(), dtype);
    const TrainingRule rule = training_rule(s, mask, backend);
    const ProductWork products = product_work(s, mask, backend);
    result.products_forward += products.forward;
    if (mask != 0) result.products_backward += products.backward;
    InspectedOperation row{operation.name,     std::string(name_of(operation.attributes)), "",      0,
                           rule.forward.flops, mask != 0 ? rule.backward.flops : Flops{},  Bytes{}, operation.fused};
    if (!operation.outputs.empty()) row.output = to_string(graph[operation.outputs[0]].shape);
    for (const TensorId input : operation.inputs)
      if (input.valid() && graph[input].kind == TensorKind::parameter && counted.insert(input).second)
        row.parameters += element_count(graph[input].shape);
    if (rule.view) kept.pass_memory_on(operation);
    if (mask != 0) kept.keep(OperationId{i}, rule.saved);
    result.flops_forward += row.forward;
    result.flops_backward += row.backward;
    result.operations.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < result.operations.size(); ++i) {
    result.operations[i].kept = kept.of(OperationId{i});
    result.activation_bytes += result.operations[i].kept;
  }
  return result;
}

}  // namespace sibyl
