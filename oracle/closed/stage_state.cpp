// What follows a stage's backward, and its memory, by formula.
#include <algorithm>

#include "oracle/closed/stage_form.h"
#include "oracle/plan/precision.h"

namespace sibyl::closed {

void StageFormula::add_tail(StageForm& form) {
  const Strategy& strategy = replicas_.strategy();
  KernelPrices& kernels = table_.kernels();
  std::vector<Shape> shapes = updated_;
  if (kernels.cluster().kernels.device().backend == Backend::cuda && !shapes.empty()) {
    std::int64_t elements = 0;
    for (const Shape& shape : shapes) elements += element_count(shape);
    shapes = {{elements}};
  }
  double busy = copies_back_;
  int launches = copied_back_;
  const auto run = [&](Signature signature) {
    const double time =
        kernels.of({std::move(signature), sibyl::Pass::forward, 0}, strategy).estimate.time.time.value();
    busy += time * factor_;
    ++launches;
    return time;
  };
  for (const Shape& shape : shapes) {
    if (has_half_weights(strategy)) {
      const DType half = compute_type(strategy.precision) == DType::f16 ? DType::f16 : DType::bf16;
      run({Cast{DType::f32}, {shape}, {shape}, half});
      run({Cast{half}, {shape}, {shape}, DType::f32});
    }
    if (strategy.precision == Precision::fp16) run({Binary{BinaryKind::mul}, {shape, {}}, {shape}, DType::f32});
    form.alone_once += run({OptimizerUpdate{strategy.optimizer, false}, {shape}, {}, DType::f32});
  }
  form.tail = std::max(busy, dispatch_ * launches) + gathers_;
}

void StageFormula::add_memory(StageForm& form) {
  const Kept kept = memory_.kept(range_.begin, range_.end, segments_);
  form.state = weights_ + optimizer_ + buffers_;
  form.gradients = gradients_;
  form.kept = kept.all;
  form.later = kept.later;
  double gathered = 0, before = 0;  // two units are there at once
  for (const Unit& unit : units_) {
    gathered = std::max(gathered, unit.bytes + before);
    before = unit.bytes;
  }
  const double sent = kept.all - kept.until.back();
  double gradients = 0;
  for (std::size_t i = range_.end; i-- > range_.begin;) {
    const std::size_t at = i - range_.begin;
    const double pass = kept.until[at] + sent + kept.again[at] + memory_.working()[i] + gathered;
    for (std::size_t u = table_.uses_from(i + 1); !freed_ && u < table_.uses_from(i); ++u) {
      const Parameter& parameter = table_.parameters()[table_.uses()[u].parameter];
      if (parameter.last_use == i || parameter.last_use >= range_.end) gradients += memory_.rounded(parameter.bytes());
    }
    form.pass = std::max(form.pass, pass);
    form.pass_and_gradients = std::max(form.pass_and_gradients, pass + gradients);
  }
  if (!freed_) form.pass_and_gradients = std::max(form.pass_and_gradients, gradients_);
}

}  // namespace sibyl::closed
