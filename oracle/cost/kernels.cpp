#include "oracle/cost/kernels.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "oracle/cost/compression.h"
#include "oracle/cost/packing.h"
#include "oracle/plan/image_kernels.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/zero.h"

namespace sibyl {
namespace {

class Collector {
 public:
  Collector(const Stage& stage, Backend backend)
      : stage_(stage),
        backend_(backend),
        sharded_(sharded_parameters(stage)),
        later_(splits_backward(stage) ? later_gradients(stage) : std::vector<std::uint32_t>(stage.steps.size(), 0)) {}

  StageKernels collect() {
    result_.steps.resize(stage_.steps.size());
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
      if (const auto* compute = std::get_if<Compute>(&stage_.steps[i]))
        add_passes(*compute, later_[i], result_.steps[i]);
      else
        add_copies(std::get<Exchange>(stage_.steps[i]), result_.steps[i]);
    }
    add_gradient_work();
    add_parts();
    add_masters();
    add_preparation();
    add_updates();
    return std::move(result_);
  }

 private:
  std::size_t index_of(KernelKey key) {
    const auto [entry, added] = known_.try_emplace(key, result_.keys.size());
    if (added) result_.keys.push_back(std::move(key));
    return entry->second;
  }

  void add_passes(const Compute& compute, std::uint32_t later, StageKernels::OfStep& step) {
    const auto add = [&](std::optional<StageKernels::Index>& to, Pass pass, std::uint32_t gradients) {
      if (std::optional<KernelKey> key = kernel_of(stage_, compute, backend_, pass, gradients))
        to = index_of(*std::move(key));
    };
    add(step.forward, Pass::forward, 0);
    if (compute.moved.forward == 0) add(step.backward_weight, Pass::backward, later);
    add(step.backward, Pass::backward, compute.gradients & ~later);
  }

  void add_copies(const Exchange& exchange, StageKernels::OfStep& step) {
    const LocalTensor &in = stage_[exchange.input], &out = stage_[exchange.output];
    const auto add = [&](std::optional<StageKernels::Index>& to, std::optional<Signature> signature) {
      if (signature) to = index_of({*std::move(signature), Pass::forward, 0});
    };
    add(step.forward, packing_of(exchange.forward, in, out, backend_));
    add(step.backward, packing_of(exchange.backward, out, in, backend_));
  }

  KernelKey addition(const LocalTensor& tensor) {
    return {{Binary{BinaryKind::add}, {tensor.shape, tensor.shape}, {tensor.shape}, tensor.dtype}, Pass::forward, 0};
  }
  KernelKey cast(const Shape& shape, DType from, DType to) {
    return {{Cast{to}, {shape}, {shape}, from}, Pass::forward, 0};
  }
  KernelKey copy_of_gradient(const LocalTensor& parameter) {
    return {{Copy{}, {parameter.shape}, {parameter.shape}, parameter.gradient_type()}, Pass::forward, 0};
  }

  // Walks backward as autograd does: the first gradient of a tensor is taken as it is, each later one is added. That of
  // what is sent may have come back from the next stage before any.
  void add_gradient_work() {
    std::vector<int> uses(stage_.tensors.size(), 0);
    each_gradient([&](std::size_t, LocalTensorId tensor) { ++uses[tensor.index()]; });
    const bool accumulates = stage_.micro_batches() > 1;
    std::vector<bool> seen(stage_.tensors.size(), false), exchanged(stage_.tensors.size(), false);
    std::vector<std::size_t> completing(stage_.tensors.size(), 0);  // the step whose backward is a gradient's last
    for (const Link& sent : stage_.sends) seen[sent.tensor.index()] = sent.gradient;
    for (const GradientSync& sync : stage_.gradients)
      for (const Bucket& bucket : sync.buckets)
        for (const LocalTensorId parameter : bucket.parameters) exchanged[parameter.index()] = true;
    for (std::size_t i = stage_.steps.size(); i-- > 0;)
      each_gradient_of(i, [&](std::size_t step, LocalTensorId id) {
        const LocalTensor& tensor = stage_[id];
        // What is fused adds up in its kernel.
        const auto* compute = std::get_if<Compute>(&stage_.steps[step]);
        if (seen[id.index()] && !(compute && compute->fused))
          result_.steps[step].sums.push_back(index_of(addition(tensor)));
        seen[id.index()] = true;
        if (tensor.kind != TensorKind::parameter || --uses[id.index()] > 0) return;
        if (tensor.summed_in)
          result_.steps[step].parameter_casts.push_back(index_of(cast(tensor.shape, tensor.dtype, *tensor.summed_in)));
        else if (accumulates && !(stage_.reduces_each && exchanged[id.index()]))
          result_.steps[step].parameter_sums.push_back(index_of(addition(tensor)));
        completing[id.index()] = step;
        if (!exchanged[id.index()] || stage_.in_buckets) return;
        result_.steps[step].bucket_copies.push_back(index_of(copy_of_gradient(tensor)));
        if (!sharded_[id.index()]) result_.copies_back.push_back(index_of(copy_of_gradient(tensor)));
      });
    add_compression(completing);
  }

  // A bucket is complete when its last gradient is.
  void add_compression(const std::vector<std::size_t>& completing) {
    for (const GradientSync& sync : stage_.gradients)
      for (const Bucket& bucket : sync.buckets) {
        std::size_t last = stage_.steps.size() - 1;
        for (const LocalTensorId parameter : bucket.parameters) last = std::min(last, completing[parameter.index()]);
        CompressionKernels kernels = compression_kernels(sync, bucket);
        for (KernelKey& key : kernels.before) result_.steps[last].compressions.push_back(index_of(std::move(key)));
        for (KernelKey& key : kernels.after) result_.decompressions.push_back(index_of(std::move(key)));
      }
  }

  // What rank 0 copies of its parts, the largest, and adds up.
  void add_parts() {
    for (const GradientSync& sync : stage_.gradients)
      for (std::size_t b = 0; stage_.reduces_each && b < sync.buckets.size(); ++b) {
        const Shape shape{part_of(sync.buckets[b], sync.parts, 0).size()};
        result_.part_sums.push_back(
            index_of({{Binary{BinaryKind::add}, {shape, shape}, {shape}, sync.buckets[b].summed}, Pass::forward, 0}));
      }
    if (backend_ != Backend::cpu) return;
    const auto part = [&](const GradientSync& sync, const Bucket& bucket, DType type) {
      const Shape shape{part_of(bucket, sync.parts, 0).size()};
      return index_of({{Copy{}, {shape}, {shape}, type}, Pass::forward, 0});
    };
    for (const ParameterUnit& unit : stage_.units) {
      const GradientSync& sync = stage_.gradients[unit.sync];
      const Bucket& bucket = sync.buckets[unit.bucket];
      result_.unit_copies.push_back(part(sync, bucket, bucket.dtype));
    }
    const auto copies_parts = [](const GradientSync& sync) {  // a cast puts them in their place
      return sync.sharded() && sync.buffers > 0 && sync.compression.kind == Compression::Kind::none;
    };
    for (const GradientSync& sync : stage_.gradients)
      for (std::size_t b = 0; copies_parts(sync) && b < sync.buckets.size(); ++b)
        result_.copies_back.push_back(part(sync, sync.buckets[b], sync.buckets[b].summed));
  }

  // The gradients as one kernel each finds them when they have been summed over ranks: whole parameters', and of
  // sharded buckets the rank's part, cut at parameters where norms are those of tensors.
  std::vector<Shape> gradients(bool by_parameter) const {
    std::vector<Shape> shapes;
    for (const Update& update : stage_.updates)
      if (!sharded_[update.parameter.index()]) shapes.push_back(stage_[update.parameter].shape);
    for (const GradientSync& sync : stage_.gradients) {
      if (!sync.sharded()) continue;
      for (const Bucket& bucket : sync.buckets) {
        const BucketPart own = part_of(bucket, sync.parts, 0);
        if (!by_parameter)
          shapes.push_back({own.size()});
        else
          for (const Piece& piece : pieces(stage_, bucket, own.begin, own.end)) shapes.push_back({piece.elements});
      }
    }
    if (backend_ == Backend::cpu || shapes.empty()) return shapes;
    return {in_one(shapes)};
  }
  static Shape in_one(const std::vector<Shape>& shapes) {
    std::int64_t elements = 0;
    for (const Shape& shape : shapes) elements += element_count(shape);
    return {elements};
  }

  // Gradients of two bytes become those of the masters, unless they were summed so, and masters the parameters, once a
  // step. Batch normalisations' parameters have four.
  void add_masters() {
    if (!stage_.masters) return;
    const auto of_two_bytes = std::ranges::find_if(
        stage_.updates, [&](const Update& update) { return size_in_bytes(stage_[update.parameter].dtype) == 2; });
    if (of_two_bytes == stage_.updates.end()) return;
    const LocalTensor& parameter = stage_[of_two_bytes->parameter];
    for (const Shape& shape : gradients(false)) {
      if (!parameter.summed_in) result_.masters.push_back(index_of(cast(shape, parameter.dtype, DType::f32)));
      result_.masters.push_back(index_of(cast(shape, DType::f32, parameter.dtype)));
    }
  }

  void add_preparation() {
    if (!stage_.clip && !stage_.scaled) return;
    for (const Shape& shape : gradients(false)) {
      const auto scaling = index_of({{Binary{BinaryKind::mul}, {shape, {}}, {shape}, DType::f32}, Pass::forward, 0});
      if (stage_.scaled) result_.unscale.push_back(scaling);
      if (!stage_.clip) continue;
      result_.norms.push_back(index_of({gradient_norm(shape), Pass::forward, 0}));
      result_.clips.push_back(scaling);
    }
  }

  void add_updates() {
    if (stage_.updates.empty()) return;
    const OptimizerUpdate update = stage_.updates.front().optimizer;
    if (!stage_.blocks.empty()) return add_block_updates(update);
    for (Shape& shape : gradients(takes_norms(update.kind)))
      result_.updates.push_back(index_of({{update, {std::move(shape)}, {}, DType::f32}, Pass::forward, 0}));
  }

  void add_block_updates(const OptimizerUpdate& update) {
    for (std::size_t b = 0; b < stage_.blocks.size(); ++b) {
      std::vector<Shape> shapes;
      for (const LocalTensorId id : stage_.blocks[b].parameters) shapes.push_back(stage_[id].shape);
      for (const std::int64_t elements : updated_elements(stage_, {{}, stage_.blocks[b].parts}))
        shapes.push_back({elements});
      if (backend_ != Backend::cpu) shapes = {in_one(shapes)};
      for (Shape& shape : shapes) {
        result_.updates.push_back(index_of({{update, {std::move(shape)}, {}, DType::f32}, Pass::forward, 0}));
        result_.updated_blocks.push_back(b);
      }
    }
  }

  void each_gradient_of(std::size_t step, auto&& visit) {
    sibyl::each_gradient(stage_, stage_.steps[step], [&](LocalTensorId id) { visit(step, id); });
  }
  void each_gradient(auto&& visit) {
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) each_gradient_of(i, visit);
  }

  const Stage& stage_;
  Backend backend_;
  std::vector<bool> sharded_;         // by tensor
  std::vector<std::uint32_t> later_;  // by step
  StageKernels result_;
  std::unordered_map<KernelKey, std::size_t> known_;
};

}  // namespace

// What moves bytes alone, copies them, whatever gradients are asked of it: each is read and written.
std::optional<KernelKey> kernel_of(const Stage& stage, const Compute& compute, Backend backend, Pass pass,
                                   std::uint32_t gradients) {
  if (compute.moved.forward > 0) {
    const double bytes = pass == Pass::forward ? compute.moved.forward : compute.moved.backward;
    if (bytes <= 0) return std::nullopt;
    const DType dtype = stage[compute.outputs.front()].dtype;
    const Shape shape = {std::max<std::int64_t>(1, std::llround(bytes / 2 / size_in_bytes(dtype)))};
    return KernelKey{{Copy{}, {shape}, {shape}, dtype}, Pass::forward, 0};
  }
  if (compute.fused || (pass == Pass::backward && gradients == 0)) return std::nullopt;
  KernelKey key{signature(stage, compute), pass, gradients};
  if (compute.strided && backend == Backend::cuda)
    key.signature.attributes = Reshape{};  // a view, which the host makes
  // A processor's norms are composed of ATen's calls whatever is asked for, and are timed so.
  auto* norm = std::get_if<Normalization>(&key.signature.attributes);
  if (norm && backend == Backend::cpu) norm->in_one_kernel = false;
  return key;
}

Signature gradient_norm(const Shape& shape) {
  Reduce norm;
  norm.kind = ReduceKind::l2;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) norm.axes.push_back(static_cast<std::int64_t>(axis));
  norm.keep_dims = false;
  return {std::move(norm), {shape}, {{}}, DType::f32};
}

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
