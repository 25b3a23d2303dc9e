// What follows a stage's backward, and its memory, by formula.
#include <algorithm>

#include "base/hash.h"
#include "oracle/closed/stage_form.h"
#include "oracle/cost/framework.h"
#include "oracle/cost/kernels.h"
#include "oracle/plan/precision.h"

namespace sibyl::closed {

const UpdatePrices::Price& UpdatePrices::of(const Shape& shape, bool casts) {
  Hash hash;
  hash.add(casts ? 1U : 0U);
  for (const std::int64_t extent : shape) hash.add(static_cast<std::uint64_t>(extent));
  const auto [entry, added] = known_.try_emplace(hash.value());
  Price& price = entry->second;
  if (!added) return price;
  const double factor = kernels_.cluster().composition.factor;
  const auto run = [&](Signature signature) {
    const KernelKey key{std::move(signature), sibyl::Pass::forward, 0};
    const double time = kernels_.of(key, strategy_).estimate.time.time.value();
    price.seconds += time * factor;
    ++price.launches;
    return time;
  };
  if (casts) {
    const DType half = compute_type(strategy_.precision) == DType::f16 ? DType::f16 : DType::bf16;
    run({Cast{DType::f32}, {shape}, {shape}, half});
    run({Cast{half}, {shape}, {shape}, DType::f32});
  }
  const auto scale = [&] { return run({Binary{BinaryKind::mul}, {shape, {}}, {shape}, DType::f32}); };
  if (strategy_.precision == Precision::fp16) price.norm += scale() * factor;
  if (strategy_.clip > 0) {
    price.norm += run(gradient_norm(shape)) * factor;
    scale();
  }
  price.update = run({update_of(strategy_), {shape}, {}, DType::f32});
  return price;
}

void StageFormula::add_tail(StageForm& form) {
  double busy = copies_back_;
  form.norm = copies_back_;
  double launches = copied_back_ * bare_launch(table_.kernels().cluster().kernels.device());
  const auto add = [&](const Shape& shape) {
    const UpdatePrices::Price& price = updates_.of(shape, casts_);
    busy += price.seconds;
    form.norm += price.norm;
    launches += price.launches;
    form.alone_once += price.update;
  };
  if (elements_ > 0) add({elements_});
  std::ranges::for_each(updated_, add);
  form.tail = std::max(busy, dispatch_ * launches) + gathers_;
}

StageForm StageFormula::least(const StageWork& work) const {
  const Strategy& strategy = replicas_.strategy();
  const double states = 4.0 * (optimizer_states(strategy.optimizer) + (has_half_weights(strategy) ? 1 : 0));
  const Range range = work.range();
  StageForm form;
  form.state = work.weights();
  for (std::size_t u = table_.uses_from(range.end); u < table_.uses_from(range.begin); ++u) {
    const Use& use = table_.uses()[u];
    if (use.before > range.begin) continue;
    const Parameter& parameter = table_.parameters()[use.parameter];
    const bool shared_out = !work.tied(parameter) && summed_[parameter.summed].parts > 1;
    const double share = shared_out ? 1.0 / summed_[parameter.summed].parts : 1.0;
    form.state += states * share * static_cast<double>(parameter.elements);
    if (shared_out && strategy.zero == 3) form.state -= (1 - share) * parameter.bytes();
  }
  // Waits for the host that are too short to matter are left out beside messages.
  const auto time = [](const Run& run) { return run.waits() ? run.time : run.compute; };
  form.forward.time = time(work.forward());
  form.input.time = time(work.input());
  for (std::size_t slot = 0; slot < backward_slots; ++slot) form.backward[slot].time = time(work.backward(slot));
  form.gradients = work.gradients();
  form.kept = work.kept();
  form.later = work.later();
  form.pass = work.pass();
  return form;
}

void StageFormula::add_memory(StageForm& form) const {
  form.state = weights_ + optimizer_ + buffers_;
  form.gradients = work_->gradients();
  form.kept = work_->kept();
  form.later = work_->later();
  double gathered = 0, before = 0;  // two units are there at once
  for (const Unit& unit : units_) {
    gathered = std::max(gathered, unit.bytes + before);
    before = unit.bytes;
  }
  form.pass = work_->pass() + gathered;
  form.pass_and_gradients = freed_ ? form.pass : std::max(work_->pass_and_gradients() + gathered, form.gradients);
}

}  // namespace sibyl::closed
