#include <map>

#include "oracle/plan/precision.h"

namespace sibyl {
namespace {

class Caster {
 public:
  Caster(const Stage& stage, Precision precision)
      : stage_(stage), precision_(precision), known_(stage.tensors.size()) {}

  Stage run() {
    for (const Step& step : stage_.steps) {
      if (const auto* compute = std::get_if<Compute>(&step))
        add(*compute);
      else
        add(std::get<Exchange>(step));
    }
    return std::move(result_);
  }

 private:
  LocalTensorId local(LocalTensorId id) {
    LocalTensorId& known = known_[id.index()];
    if (!known.valid()) known = push(stage_[id]);
    return known;
  }

  LocalTensorId push(LocalTensor tensor) {
    result_.tensors.push_back(std::move(tensor));
    return LocalTensorId{result_.tensors.size() - 1};
  }

  LocalTensorId cast(OperationId user, LocalTensorId id, DType type) {
    if (!is_floating(result_[id].dtype) || result_[id].dtype == type) return id;
    LocalTensorId& known = casts_[{id, type}];
    if (known.valid()) return known;
    LocalTensor copy = result_[id];
    copy.dtype = type;
    copy.kind = TensorKind::activation;
    known = push(std::move(copy));
    result_.steps.push_back(Compute{user, Cast{type}, {id}, {known}, type, result_[id].requires_gradient ? 1U : 0U});
    return known;
  }

  void add(const Compute& before) {
    Compute compute = before;
    std::vector<DType> activation_types;
    for (LocalTensorId& in : compute.inputs) {
      if (!in.valid()) continue;
      in = local(in);
      const bool decides = activation_types.empty() || !keeps_statistics(before.attributes);
      if (result_[in].kind == TensorKind::activation && is_floating(result_[in].dtype) && decides)
        activation_types.push_back(result_[in].dtype);
    }
    compute.dtype = operation_type(before.attributes, activation_types, precision_);
    const DType stored = storage_type(compute.dtype);
    // Normalisations keep their scale and shift, and what ranks sum of their statistics, in f32 whatever they compute in.
    const bool normalizes = keeps_statistics(before.attributes);
    const bool casts_parameters = !normalizes && !std::holds_alternative<Normalization>(before.attributes);
    for (std::size_t i = 0; i < compute.inputs.size(); ++i) {
      LocalTensorId& in = compute.inputs[i];
      if (!in.valid() || (normalizes && i == 1)) continue;
      if (casts_parameters || result_[in].kind == TensorKind::activation) in = cast(before.operation, in, stored);
    }
    for (LocalTensorId& out : compute.outputs) {
      out = local(out);
      LocalTensor& result = result_.tensors[out.index()];
      if (is_floating(result.dtype) && !std::holds_alternative<BatchStatistics>(before.attributes)) result.dtype = stored;
      if (const auto* to = std::get_if<Cast>(&before.attributes)) result.dtype = to->to;
    }
    result_.steps.push_back(std::move(compute));
  }

  // What moves keeps its type.
  void add(const Exchange& before) {
    Exchange exchange = before;
    exchange.input = local(before.input);
    exchange.output = local(before.output);
    result_.tensors[exchange.output.index()].dtype = result_[exchange.input].dtype;
    result_.steps.push_back(std::move(exchange));
  }

  // Its other operands are statistics.
  static bool keeps_statistics(const Attributes& attributes) {
    return std::holds_alternative<BatchNormalize>(attributes);
  }

  const Stage& stage_;
  Precision precision_;
  std::vector<LocalTensorId> known_;  // by LocalTensorId of the stage before
  std::map<std::pair<LocalTensorId, DType>, LocalTensorId> casts_;
  Stage result_;
};

}  // namespace

Stage with_precision(const Stage& stage, Precision precision) { return Caster(stage, precision).run(); }

}  // namespace sibyl
