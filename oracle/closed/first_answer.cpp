#include "oracle/closed/first_answer.h"

namespace sibyl::closed {

FirstAnswers::FirstAnswers(const Graph& graph, const Cluster& cluster)
    : graph_(graph), cluster_(cluster), folding_(fold(graph)), kernels_(cluster) {}

std::optional<FirstAnswer> FirstAnswers::of(const Strategy& strategy) {
  if (!has_closed_form(strategy) || strategy.devices() > cluster_.devices()) return std::nullopt;
  FormKey key = form_key(strategy, cluster_);
  if (!form_ || key_ != key) {
    auto made = ProgramForm::make(graph_, folding_ ? &*folding_ : nullptr, strategy, kernels_);
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
