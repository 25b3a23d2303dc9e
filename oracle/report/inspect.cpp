#include <numeric>
#include <set>

#include "models/signature.h"
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

// Counts every kept tensor once, views as the tensor whose memory they share.
class KeptTensors {
 public:
  KeptTensors(const Graph& graph, DType dtype) : graph_(graph), dtype_(dtype), owner_(graph.tensors().size()) {
    std::iota(owner_.begin(), owner_.end(), std::size_t{0});
  }

  Bytes keep(const Operation& operation, const TrainingRule& rule) {
    if (rule.view && !operation.inputs.empty() && operation.inputs[0].valid())
      for (const TensorId output : operation.outputs) owner_[output.index()] = owner_[operation.inputs[0].index()];
    Bytes sum;
    for (const Saved& saved : rule.saved) {
      if (saved.what == Saved::What::extra) {
        sum += saved.bytes;
        continue;
      }
      const auto& tensors = saved.what == Saved::What::input ? operation.inputs : operation.outputs;
      if (saved.index < tensors.size() && tensors[saved.index].valid()) sum += keep(tensors[saved.index]);
    }
    return sum;
  }

 private:
  Bytes keep(TensorId id) {
    const TensorId owner{owner_[id.index()]};
    const Tensor& tensor = graph_[owner];
    if (is_model_constant(tensor.kind) || !kept_.insert(owner).second) return Bytes{};
    const DType stored = tensor.dtype == DType::f32 ? dtype_ : tensor.dtype;
    return Bytes{static_cast<double>(element_count(tensor.shape)) * size_in_bytes(stored)};
  }

  const Graph& graph_;
  DType dtype_;
  std::vector<std::size_t> owner_;
  std::set<TensorId> kept_;
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
  result.unsupported = import.unsupported;
  for (const Tensor& tensor : graph.tensors())
    if (tensor.kind == TensorKind::parameter)
      result.parameter_bytes += Bytes{static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype)};
  KeptTensors kept(graph, dtype);
  std::set<TensorId> counted;  // a weight that several operations share belongs to the first
  for (std::size_t i = 0; i < graph.operations().size(); ++i) {
    const Operation& operation = graph.operations()[i];
    const std::uint32_t mask = gradient_mask(graph, operation);
    const TrainingRule rule = training_rule(signature(graph, OperationId{i}, graph.batch(), dtype), mask, backend);
    InspectedOperation row{operation.name,     std::string(name_of(operation.attributes)), "",      0,
                           rule.forward.flops, mask != 0 ? rule.backward.flops : Flops{},  Bytes{}, operation.fused};
    if (!operation.outputs.empty()) row.output = to_string(graph[operation.outputs[0]].shape);
    for (const TensorId input : operation.inputs)
      if (input.valid() && graph[input].kind == TensorKind::parameter && counted.insert(input).second)
        row.parameters += element_count(graph[input].shape);
    // Views pass memory on even where nothing is kept for them.
    const Bytes bytes = kept.keep(operation, mask != 0 ? rule : TrainingRule{{}, {}, {}, rule.view});
    row.kept = bytes;
    result.flops_forward += row.forward;
    result.flops_backward += row.backward;
    result.activation_bytes += bytes;
    result.operations.push_back(std::move(row));
  }
  return result;
}

}  // namespace sibyl
