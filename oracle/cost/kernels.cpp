#include "oracle/cost/kernels.h"

#include <unordered_map>
#include <unordered_set>

namespace sibyl {
namespace {

class Collector {
 public:
  Collector(const Stage& stage, Backend backend) : stage_(stage), backend_(backend) {}

  StageKernels collect() {
    result_.steps.resize(stage_.steps.size());
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
      if (const auto* compute = std::get_if<Compute>(&stage_.steps[i]))
        add_passes(*compute, result_.steps[i]);
      else
        add_copies(std::get<Exchange>(stage_.steps[i]), result_.steps[i]);
    }
    add_gradient_work();
    add_updates();
    return std::move(result_);
  }

 private:
  std::size_t index_of(KernelKey key) {
    const auto [entry, added] = known_.try_emplace(key, result_.keys.size());
    if (added) result_.keys.push_back(std::move(key));
    return entry->second;
  }

  void add_passes(const Compute& compute, StageKernels::OfStep& step) {
    Signature s = signature(stage_, compute);
    step.forward = index_of({s, Pass::forward, 0});
    if (compute.gradients != 0) step.backward = index_of({std::move(s), Pass::backward, compute.gradients});
  }

  void add_copies(const Exchange& exchange, StageKernels::OfStep& step) {
    const LocalTensor& in = stage_[exchange.input];
    const LocalTensor& out = stage_[exchange.output];
    if (copies(exchange.forward)) step.forward = index_of(copy(sends_packed(exchange.forward) ? in : out));
    if (copies(exchange.backward)) step.backward = index_of(copy(sends_packed(exchange.backward) ? out : in));
  }

  // Sums are taken where they lie, and parts of an outermost dimension lie in a row.
  static bool copies(const Transfer& transfer) {
    switch (transfer.motion) {
      case Motion::none:
      case Motion::all_reduce: return false;
      case Motion::all_gather:
      case Motion::reduce_scatter: return transfer.dim > 0 || !transfer.pieces.empty();
      default: return true;
    }
  }
  static bool sends_packed(const Transfer& transfer) {
    return transfer.motion == Motion::reduce_scatter || transfer.motion == Motion::all_to_all;
  }

  KernelKey addition(const LocalTensor& tensor) {
    return {{Binary{BinaryKind::add}, {tensor.shape, tensor.shape}, {tensor.shape}, tensor.dtype}, Pass::forward, 0};
  }
  KernelKey copy(const LocalTensor& tensor) {
    return {{Copy{}, {tensor.shape}, {tensor.shape}, tensor.dtype}, Pass::forward, 0};
  }

  // Walks backward as autograd does: the first gradient of a tensor is taken as it is, each later one is added.
  void add_gradient_work() {
    std::vector<int> uses(stage_.tensors.size(), 0);
    each_gradient([&](std::size_t, LocalTensorId tensor) { ++uses[tensor.index()]; });
    std::vector<bool> seen(stage_.tensors.size(), false);
    for (std::size_t i = stage_.steps.size(); i-- > 0;)
      each_gradient_of(i, [&](std::size_t step, LocalTensorId id) {
        const LocalTensor& tensor = stage_[id];
        if (seen[id.index()]) result_.steps[step].sums.push_back(index_of(addition(tensor)));
        seen[id.index()] = true;
        if (tensor.kind != TensorKind::parameter || --uses[id.index()] > 0) return;
        if (stage_.micro_batches() > 1) result_.steps[step].parameter_sums.push_back(index_of(addition(tensor)));
        if (stage_.gradients.empty()) return;
        result_.steps[step].bucket_copies.push_back(index_of(copy(tensor)));
        result_.copies_back.push_back(index_of(copy(tensor)));
      });
  }

  void add_updates() {
    if (backend_ == Backend::cpu) {
      for (const Update& update : stage_.updates)
        result_.updates.push_back(index_of(update_of(update, stage_[update.parameter].shape)));
      return;
    }
    std::int64_t elements = 0;
    for (const Update& update : stage_.updates) elements += element_count(stage_[update.parameter].shape);
    if (elements > 0) result_.updates.push_back(index_of(update_of(stage_.updates.front(), {elements})));
  }

  static KernelKey update_of(const Update& update, Shape shape) {
    return {{update.optimizer, {std::move(shape)}, {}, DType::f32}, Pass::forward, 0};
  }

  void each_gradient_of(std::size_t step, auto&& visit) {
    sibyl::each_gradient(stage_, stage_.steps[step], [&](LocalTensorId id) { visit(step, id); });
  }
  void each_gradient(auto&& visit) {
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) each_gradient_of(i, visit);
  }

  const Stage& stage_;
  Backend backend_;
  StageKernels result_;
  std::unordered_map<KernelKey, std::size_t> known_;
};

}  // namespace

StageKernels kernels_of(const Stage& stage, Backend backend) { return Collector(stage, backend).collect(); }

std::vector<KernelKey> kernels_of(const Plan& plan, Backend backend) {
  std::vector<KernelKey> keys;
  std::unordered_set<KernelKey> known;
  for (const Stage& stage : plan.stages)
    for (KernelKey& key : kernels_of(stage, backend).keys)
      if (known.insert(key).second) keys.push_back(std::move(key));
  return keys;
}

}  // namespace sibyl
