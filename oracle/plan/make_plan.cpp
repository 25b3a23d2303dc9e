#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "oracle/plan/buckets.h"
#include "oracle/plan/plan.h"
#include "oracle/plan/precision.h"

namespace sibyl {
namespace {

// Tensors that the loss depends on: only these get gradients.
std::vector<bool> reaches_loss(const Graph& graph) {
  std::vector<bool> reached(graph.tensors().size(), false);
  if (!graph.loss.valid()) return reached;
  reached[graph.loss.index()] = true;
  const auto operations = graph.operations();
  for (auto op = operations.rbegin(); op != operations.rend(); ++op) {
    const bool on_path = std::any_of(op->outputs.begin(), op->outputs.end(),
                                     [&](TensorId t) { return t.valid() && reached[t.index()]; });
    if (!on_path) continue;
    for (const TensorId in : op->inputs)
      if (in.valid()) reached[in.index()] = true;
  }
  return reached;
}

// Builds the one stage of an unsplit model: each rank runs every operation on `batch` samples.
class StageBuilder {
 public:
  StageBuilder(const Graph& graph, std::int64_t batch, const Strategy& strategy)
      : graph_(graph), batch_(batch), strategy_(strategy), reached_(reaches_loss(graph)),
        local_(graph.tensors().size()) {}

  Stage build() {
    for (std::size_t i = 0; i < graph_.operations().size(); ++i) add_operation(OperationId{i});
    for (std::size_t i = 0; i < stage_.tensors.size(); ++i) {
      const LocalTensor& tensor = stage_.tensors[i];
      if (tensor.kind == TensorKind::parameter && tensor.requires_gradient && is_master(LocalTensorId{i}))
        stage_.updates.push_back({LocalTensorId{i}, OptimizerUpdate{strategy_.optimizer, false}});
    }
    return std::move(stage_);
  }

 private:
  // A parameter's copy in lower precision is an activation of the step; the parameter itself is the master.
  bool is_master(LocalTensorId id) const { return local_[stage_[id].origin.index()] == id; }

  LocalTensorId local(TensorId id) {
    LocalTensorId& known = local_[id.index()];
    if (known.valid()) return known;
    const Tensor& tensor = graph_[id];
    known = add({id, local_shape(graph_, id, batch_), tensor.dtype, tensor.kind,
                 graph_.requires_gradient(id) && reached_[id.index()]});
    return known;
  }

  LocalTensorId add(LocalTensor tensor) {
    stage_.tensors.push_back(std::move(tensor));
    return LocalTensorId{stage_.tensors.size() - 1};
  }

  // The tensor in `type`, cast once and reused (autocast keeps its casts of weights for the step).
  LocalTensorId cast(OperationId user, LocalTensorId id, DType type) {
    if (!is_floating(stage_[id].dtype) || stage_[id].dtype == type) return id;
    LocalTensorId& known = casts_[{id, type}];
    if (known.valid()) return known;
    LocalTensor copy = stage_[id];
    copy.dtype = type;
    copy.kind = TensorKind::activation;
    known = add(std::move(copy));
    stage_.steps.push_back(Compute{user, Cast{type}, {id}, {known}, type, stage_[id].requires_gradient ? 1U : 0U});
    return known;
  }

  void add_operation(OperationId id) {
    const Operation& operation = graph_[id];
    std::vector<LocalTensorId> inputs;
    std::vector<DType> activation_types;
    for (const TensorId in : operation.inputs) {
      inputs.push_back(in.valid() ? local(in) : LocalTensorId{});
      if (in.valid() && stage_[inputs.back()].kind == TensorKind::activation && is_floating(stage_[inputs.back()].dtype))
        activation_types.push_back(stage_[inputs.back()].dtype);
    }
    const DType type = operation_type(operation.attributes, activation_types, strategy_.precision);
    // Normalisations keep their scale and shift in f32 whatever they compute in.
    const bool casts_parameters = !std::holds_alternative<Normalization>(operation.attributes);
    for (LocalTensorId& in : inputs)
      if (in.valid() && (casts_parameters || stage_[in].kind == TensorKind::activation))
        in = cast(id, in, storage_type(type));

    Compute compute{id, operation.attributes, inputs, {}, type, 0};
    bool backward = false;
    for (const TensorId out : operation.outputs) {
      if (!out.valid()) continue;
      compute.outputs.push_back(local(out));
      LocalTensor& result = stage_.tensors[compute.outputs.back().index()];
      if (is_floating(result.dtype)) result.dtype = storage_type(type);
      if (const auto* to = std::get_if<Cast>(&operation.attributes)) result.dtype = to->to;
      backward = backward || result.requires_gradient;
    }
    for (std::size_t i = 0; backward && i < inputs.size(); ++i)
      if (inputs[i].valid() && stage_[inputs[i]].requires_gradient) compute.gradients |= 1U << i;
    stage_.steps.push_back(std::move(compute));
  }

  const Graph& graph_;
  std::int64_t batch_;
  const Strategy& strategy_;
  std::vector<bool> reached_;
  std::vector<LocalTensorId> local_;  // by TensorId
  std::map<std::pair<LocalTensorId, DType>, LocalTensorId> casts_;
  Stage stage_;
};

Result<void> check(const Graph& graph, const Strategy& strategy) {
  if (!graph.loss.valid())
    return fail("the model has no loss to train", graph.name, "import it with a loss");
  if (strategy.data < 1 || strategy.global_batch < 1 || strategy.accumulation < 1)
    return fail(ErrorCode::usage, "degrees of parallelism, batch and accumulation must be at least 1");
  const std::int64_t pieces = static_cast<std::int64_t>(strategy.data) * strategy.accumulation;
  if (strategy.global_batch % pieces == 0) return {};
  const std::int64_t below = strategy.global_batch / pieces * pieces;
  const std::string nearest = below > 0 ? fmt::format("{} or {}", below, below + pieces) : fmt::format("{}", pieces);
  return fail(ErrorCode::infeasible,
              fmt::format("a global batch of {} cannot be divided over {} replicas{}", strategy.global_batch, strategy.data,
                          strategy.accumulation > 1 ? fmt::format(" of {} micro-batches", strategy.accumulation) : ""),
              "--batch", fmt::format("the nearest batch that can: {}", nearest));
}

}  // namespace

Result<Plan> make_plan(const Graph& graph, const Strategy& strategy) {
  SIBYL_CHECK(check(graph, strategy));
  Plan plan;
  plan.strategy = strategy;
  plan.mesh.extents = {{MeshAxis::data, strategy.data}};
  plan.micro_batch = strategy.global_batch / strategy.data / strategy.accumulation;
  Stage stage = StageBuilder(graph, plan.micro_batch, strategy).build();
  if (strategy.data > 1) stage.gradients.push_back(data_parallel_sync(stage, strategy));
  for (int m = 0; m < static_cast<int>(strategy.accumulation); ++m) {
    stage.schedule.push_back({Turn::Kind::forward, m});
    stage.schedule.push_back({Turn::Kind::backward, m});
  }
  plan.stages.push_back(std::move(stage));
  return plan;
}

Signature signature(const Stage& stage, const Compute& compute) {
  Signature result{compute.attributes, {}, {}, compute.dtype};
  std::size_t last = compute.inputs.size();
  while (last > 0 && !compute.inputs[last - 1].valid()) --last;
  for (std::size_t i = 0; i < last; ++i)
    result.inputs.push_back(compute.inputs[i].valid() ? stage[compute.inputs[i]].shape : Shape{0});
  for (const LocalTensorId out : compute.outputs) result.outputs.push_back(stage[out].shape);
  return result;
}

// Autograd runs the latest forward operation first; within one operation gradients arrive in operand order. A parameter
// used several times is complete when its first use's backward has run. Casts pass the gradient on to the master.
std::vector<LocalTensorId> gradient_order(const Stage& stage) {
  std::vector<LocalTensorId> order;
  std::vector<int> uses(stage.tensors.size(), 0);
  auto each_parameter = [&](const Step& step, auto&& visit) {
    const auto* compute = std::get_if<Compute>(&step);
    if (!compute) return;
    for (std::size_t i = 0; i < compute->inputs.size(); ++i)
      if ((compute->gradients >> i & 1U) && stage[compute->inputs[i]].kind == TensorKind::parameter)
        visit(compute->inputs[i]);
  };
  for (const Step& step : stage.steps) each_parameter(step, [&](LocalTensorId p) { ++uses[p.index()]; });
  for (auto step = stage.steps.rbegin(); step != stage.steps.rend(); ++step)
    each_parameter(*step, [&](LocalTensorId p) {
      if (--uses[p.index()] == 0) order.push_back(p);
    });
  return order;
}

std::int64_t bytes_sent_per_step(const Plan& plan, int rank, Algorithm algorithm) {
  std::int64_t total = 0;
  for (const Stage& stage : plan.stages)
    for (const GradientSync& sync : stage.gradients)
      for (const Bucket& bucket : sync.buckets)
        total += bytes_sent(Collective::all_reduce, algorithm, bucket.elements,
                            static_cast<std::int64_t>(size_in_bytes(bucket.dtype)), plan.mesh.size(sync.axis),
                            plan.mesh.coordinate(rank, sync.axis));
  return total;
}

}  // namespace sibyl
