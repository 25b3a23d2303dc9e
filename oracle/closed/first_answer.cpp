#include "oracle/closed/first_answer.h"

#include <tuple>

namespace sibyl::closed {
namespace {

// What a search does not vary, and a form therefore holds for all that share it.
auto held(const Strategy& s) {
  return std::tuple(s.precision, s.half_weights, s.fp32_gradients, s.optimizer, s.fused_update, s.written_update,
                    s.batch_norm, s.fused_norms, s.fused_pointwise, s.dropless, s.converted_images, s.converted_norms,
                    s.attention, s.first_bucket, s.clip > 0);
}

}  // namespace

FirstAnswers::FirstAnswers(const Graph& graph, const Cluster& cluster)
    : graph_(graph), cluster_(cluster), folding_(fold(graph)), kernels_(cluster) {}

std::optional<FirstAnswer> FirstAnswers::of(const Strategy& strategy) {
  if (!has_closed_form(strategy, cluster_) || strategy.devices() > cluster_.devices()) return std::nullopt;
  FormKey key = form_key(strategy, cluster_);
  if (!form_ || key_ != key || held(made_from_) != held(strategy)) {
    form_.reset();
    made_from_ = strategy;
    auto made = ProgramForm::make(graph_, folding_ ? &*folding_ : nullptr, made_from_, kernels_);
    if (!made) return std::nullopt;
    form_ = std::move(*made);
    key_ = std::move(key);
  }
  const Result<Form> form = form_->of(strategy);
  if (!form || form->step_time.value() <= 0) return std::nullopt;
  return FirstAnswer{form->step_time, static_cast<double>(strategy.global_batch) / form->step_time.value(),
                     form->memory, cluster_.kernels.device().memory};
}

}  // namespace sibyl::closed
