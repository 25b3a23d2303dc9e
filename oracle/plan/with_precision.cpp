#include <map>
#include <set>

#include "oracle/plan/precision.h"

namespace sibyl {
namespace {

class Caster {
 public:
  Caster(const Stage& stage, Precision precision, bool half_weights, bool fp32_gradients)
      : stage_(stage),
        precision_(precision),
        half_weights_(half_weights),
        fp32_gradients_(fp32_gradients),
        known_(stage.tensors.size()) {
    for (const Step& step : stage.steps)
      if (const auto* compute = std::get_if<Compute>(&step); compute && keeps_f32_parameters(compute->attributes))
        for (const LocalTensorId in : compute->inputs)
          if (in.valid()) in_full_.insert(in);
    if (precision == Precision::fp8) find_fp8();
  }

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
  void find_fp8() {
    made_in_fp8_.resize(stage_.tensors.size(), false);
    read_in_fp8_.resize(stage_.tensors.size());
    std::vector<bool> read_otherwise(stage_.tensors.size(), false);
    for (const Step& step : stage_.steps) {
      const auto* compute = std::get_if<Compute>(&step);
      const bool fp8 = compute && size_in_bytes(half_model_type(compute->attributes, precision_)) == 1;
      for (const LocalTensorId in : inputs_of(step)) {
        if (!in.valid()) continue;
        if (fp8)
          read_in_fp8_[in.index()] = compute->operation;
        else
          read_otherwise[in.index()] = true;
      }
      for (const LocalTensorId out : outputs_of(step))
        if (out.valid()) made_in_fp8_[out.index()] = fp8;
    }
    for (const Link& link : stage_.sends) read_otherwise[link.tensor.index()] = true;
    for (std::size_t t = 0; t < read_otherwise.size(); ++t)
      if (read_otherwise[t]) read_in_fp8_[t] = {};
  }

  LocalTensorId local(LocalTensorId id) {
    LocalTensorId& known = known_[id.index()];
    if (known.valid()) return known;
    known = push(stage_[id]);
    LocalTensor& tensor = result_.tensors[known.index()];
    if (!half_weights_ || tensor.kind != TensorKind::parameter || !is_floating(tensor.dtype) || in_full_.count(id) > 0)
      return known;
    tensor.dtype = storage_type(compute_type(precision_));
    if (fp32_gradients_) tensor.summed_in = DType::f32;
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
    // Of the type it reads, as any Cast is: one whose types are equal is a view. So are those to fp8, which libraries
    // write from the kernel before (Transformer Engine's norms and activations).
    const DType read = size_in_bytes(type) < 2 ? type : result_[id].dtype;
    result_.steps.push_back(Compute{user, Cast{type}, {id}, {known}, read, result_[id].requires_gradient ? 1U : 0U});
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
    compute.dtype = half_weights_ ? half_model_type(before.attributes, precision_)
                                  : operation_type(stage_, before, activation_types, precision_);
    const DType stored = storage_type(compute.dtype);
    // Normalisations keep their scale and shift, and what ranks sum of their statistics, in f32 whatever they compute
    // in.
    const bool normalizes = keeps_statistics(before.attributes);
    const bool casts_parameters = !normalizes && !std::holds_alternative<Normalization>(before.attributes);
    for (std::size_t i = 0; i < compute.inputs.size(); ++i) {
      LocalTensorId& in = compute.inputs[i];
      if (!in.valid() || (normalizes && i == 1)) continue;
      const DType wanted = i < 2 ? stored : result_type(compute.dtype);  // a bias is added to the result
      if (casts_parameters || result_[in].kind == TensorKind::activation) in = cast(before.operation, in, wanted);
    }
    for (LocalTensorId& out : compute.outputs) {
      out = local(out);
      LocalTensor& result = result_.tensors[out.index()];
      if (is_floating(result.dtype) && !std::holds_alternative<NormStatistics>(before.attributes))
        result.dtype = result_type(compute.dtype);
      if (const auto* to = std::get_if<Cast>(&before.attributes)) result.dtype = to->to;
    }
    result_.steps.push_back(std::move(compute));
  }

  // What moves keeps its type. But Transformer Engine gathers what linear layers read in fp8 as they read it, and so
  // gradients of what they made (module/layernorm_linear.py, base.py: grad_output_preprocess); sums are taken of two
  // bytes.
  void add(const Exchange& before) {
    Exchange exchange = before;
    exchange.input = local(before.input);
    if (precision_ == Precision::fp8) {
      const DType wide = result_[exchange.input].dtype;
      const OperationId reader = read_in_fp8_[before.output.index()];
      if (exchange.forward.motion == Motion::all_gather && reader.valid()) {
        exchange.input = cast(reader, exchange.input, DType::f8e4m3);
        exchange.backward.type = wide;
      }
      if (exchange.backward.motion == Motion::all_gather && made_in_fp8_[before.input.index()])
        exchange.backward.type = DType::f8e4m3;
    }
    exchange.output = local(before.output);
    result_.tensors[exchange.output.index()].dtype = result_[exchange.input].dtype;
    result_.steps.push_back(std::move(exchange));
  }

  // Scale and shift of a batch-norm stay f32 beside the statistics.
  static bool keeps_f32_parameters(const Attributes& attributes) {
    const auto* norm = std::get_if<Normalization>(&attributes);
    return (norm && norm->kind == NormalizationKind::batch) || keeps_statistics(attributes);
  }

  // Its other operands are statistics.
  static bool keeps_statistics(const Attributes& attributes) { return std::holds_alternative<ApplyNorm>(attributes); }

  const Stage& stage_;
  Precision precision_;
  bool half_weights_, fp32_gradients_;
  std::set<LocalTensorId> in_full_;   // of the stage before
  // In fp8, of the stage before: which linear layer reads it, where nothing else does; and what one made.
  std::vector<OperationId> read_in_fp8_;
  std::vector<bool> made_in_fp8_;
  std::vector<LocalTensorId> known_;  // by LocalTensorId of the stage before
  std::map<std::pair<LocalTensorId, DType>, LocalTensorId> casts_;
  Stage result_;
};

}  // namespace

Stage with_precision(const Stage& stage, Precision precision, bool half_weights, bool fp32_gradients) {
  return Caster(stage, precision, half_weights, fp32_gradients).run();
}

}  // namespace sibyl
