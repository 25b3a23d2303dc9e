// What StepWalk tells of the memory that each kernel touches (reuse.h).
#include <algorithm>

#include "oracle/memory/step_walk.h"
#include "oracle/plan/offload.h"

namespace sibyl {

void StepWalk::touch_storage(std::size_t storage, Reuse::Warm warm) {
  if (storage != Storages::none) reuse_->touch(storages_.memory(storage), warm);
}

// Parameters, buffers and the batch have no storage: they stay.
void StepWalk::touch(LocalTensorId id, Reuse::Warm warm) {
  if (!id.valid()) return;
  if (storage_of_[id.index()] != Storages::none)
    touch_storage(storage_of_[id.index()], warm);
  else
    reuse_->touch(reuse_->fixed(owner(What::tensor, id), bytes_of(id)), warm);
}

void StepWalk::touch_gradient(LocalTensorId id, Reuse::Warm warm) { touch_storage(gradient_of_[id.index()], warm); }

void StepWalk::begin_touching(const std::optional<std::size_t>& kernel) {
  reuse_->kernel(&stage_, kernel, kernel ? priced_.prices[*kernel].estimate.time.time : Seconds{});
}

// The first activation was made right before, here and where kernels are timed.
void StepWalk::touch_forward(std::size_t step) {
  begin_touching(priced_.kernels.steps[step].forward);
  const StepFacts& facts = facts_[step];
  for (std::size_t in = 0; in < facts.inputs.size(); ++in) {
    const LocalTensorId id = facts.inputs[in];
    const bool made = in == 0 && id.valid() && stage_[id].kind == TensorKind::activation;
    touch(id, made ? Reuse::Warm::always : Reuse::Warm::no);
  }
  for (const LocalTensorId out : facts.outputs) touch(out);
  for (const std::size_t saved : held().saved[step]) touch_storage(saved);
}

// So was the gradient that comes in, unless weights' gradients were put off: then it was made long before, but not
// where kernels are timed.
void StepWalk::touch_backward(std::size_t step, std::size_t incoming, std::uint32_t mask,
                              const std::optional<std::size_t>& kernel) {
  begin_touching(kernel);
  const StepFacts& facts = facts_[step];
  touch_storage(incoming, (mask & later_[step]) != 0 ? Reuse::Warm::when_timed : Reuse::Warm::always);
  for (const std::size_t saved : held().saved[step]) touch_storage(saved);
  for (const Saved& saved : facts.rule.saved)
    if (saved.what == Saved::What::input && saved.index < facts.inputs.size()) {
      const LocalTensorId id = facts.inputs[saved.index];
      if (id.valid() && stage_[id].kind != TensorKind::activation)
        reuse_->touch(reuse_->fixed(owner(What::tensor, id), bytes_of(id)));
    }
  for (std::size_t in = 0; in < facts.inputs.size(); ++in)
    if (mask >> in & 1U) touch_storage(sum_of(step, in));
}

void StepWalk::touch_moved_back(std::size_t step) {
  const auto& exchange = std::get<Exchange>(stage_.steps[step]);
  begin_touching(priced_.kernels.steps[step].backward);
  touch_gradient(exchange.output, Reuse::Warm::always);
  touch_gradient(exchange.input);
}

// Gradients on their way, then what the optimizer reads and writes.
void StepWalk::touch_update() {
  const StageKernels& kernels = priced_.kernels;
  Seconds time;
  for (const auto* once_a_step : {&kernels.unscale, &kernels.norms, &kernels.clips, &kernels.masters, &kernels.updates,
                                  &kernels.copies_back, &kernels.decompressions})
    for (const StageKernels::Index kernel : *once_a_step) time += priced_.prices[kernel].estimate.time.time;
  reuse_->kernel(&stage_, {}, time);
  double parts = 1;
  std::size_t buckets = 0;
  for (const GradientSync& sync : stage_.gradients) {
    parts = std::max(parts, static_cast<double>(sync.parts));
    for (const Bucket& bucket : sync.buckets)
      reuse_->touch(reuse_->fixed(owner(What::bucket, buckets++), static_cast<double>(bucket.bytes())));
  }
  for (const Update& update : stage_.updates) {
    const LocalTensorId id = update.parameter;
    touch(id);
    touch_gradient(id);
    const double states = 4.0 * static_cast<double>(element_count(stage_[id].shape) * state_tensors(stage_));
    if (stage_.state_tier == Tier::device)
      reuse_->touch(reuse_->fixed(owner(What::state, id), sharded_[id.index()] ? states / parts : states));
  }
}

}  // namespace sibyl
