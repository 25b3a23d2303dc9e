// What follows a stage's backward, and its memory, by formula.
#include <algorithm>

#include "oracle/closed/stage_form.h"
#include "oracle/plan/zero.h"

namespace sibyl::closed {

void StageFormula::add_tail(StageForm& form) {
  const StageUpdates::Form updates = updates_.form(sums_norms_);
  const double busy = copies_back_.seconds + updates.kernels;
  const double launches = copies_back_.launches + updates.launches;
  form.norm = copies_back_.seconds + updates.norm;
  form.alone_once = updates.alone + compression_alone_;
  form.update = updates.memory;
  form.tail = std::max(busy, dispatch_ * launches) + updates.waited + gathers_;
}

StageForm StageFormula::least(const StageWork& work) const {
  const Strategy& strategy = replicas_.strategy();
  const double kept = strategy.parameter_tier == Tier::device ? 1.0 : 0.0;  // of the rank's part
  const Range range = work.range();
  StageForm form;
  form.state = work.weights();
  for (std::size_t u = table_.uses_from(range.end); u < table_.uses_from(range.begin); ++u) {
    const Use& use = table_.uses()[u];
    if (use.before > range.begin) continue;
    const Parameter& parameter = table_.parameters()[use.parameter];
    const bool shared_out = !work.tied(parameter) && summed_[parameter.summed].parts > 1;
    const double share = shared_out ? 1.0 / summed_[parameter.summed].parts : 1.0;
    form.state += share * updates_.state_bytes(parameter.elements);
    if (shared_out && strategy.zero == 3) form.state -= (1 - share * kept) * parameter.bytes();
  }
  add_times(form, work);
  form.gradients = work.gradients();
  form.kept = work.kept();
  form.later = work.later();
  form.pass = work.pass();
  return form;
}

// Waits for the host that are too short to matter are left out beside messages.
void StageFormula::add_times(StageForm& form, const StageWork& work) const {
  const auto time = [](const Run& run) { return run.waits() ? run.time : run.compute; };
  form.forward.time = time(work.forward());
  form.input.time = time(work.input());
  for (std::size_t slot = 0; slot < backward_slots; ++slot) form.backward[slot].time = time(work.backward(slot));
}

bool StageFormula::gathers() const {
  return replicas_.strategy().zero == 3 && std::ranges::any_of(summed_, [](const Summed& s) { return s.parts > 1; });
}

Result<bool> StageFormula::reduces_each() const {
  if (!replicas_.strategy().reduces_each()) return false;
  const auto by_parts = [](const Summed& s) { return s.axes.empty() || s.parts > 1; };
  const bool some = std::ranges::any_of(summed_, [](const Summed& s) { return s.parts > 1; });
  SIBYL_CHECK(check_reduced_each(some, std::ranges::all_of(summed_, by_parts)));
  return some;
}

StageForm StageFormula::least_of_gathering(const StageWork& work) {
  prepare(work);
  StageForm form;
  add_times(form, work);
  constexpr double rounding = 1e-9;
  double gathers = 0;
  for (const Unit& unit : units_) gathers += unit.gather.sent.seconds * (1 - rounding);
  const auto at_least = [&](StageForm::Turns& pass) { pass.time = std::max(pass.time, gathers); };
  at_least(form.forward);
  if (work.asked().split)
    at_least(form.input);
  else
    std::ranges::for_each(form.backward, at_least);
  add_tail(form);
  add_memory(form);
  return form;
}

void StageFormula::add_memory(StageForm& form) const {
  form.state = weights_ + updates_.state() + buffers_;
  form.gradients = work_->gradients();
  form.kept = work_->kept();
  form.later = work_->later();
  const double units = gathered(false);
  form.pass = work_->pass() + units;
  form.pass_and_gradients =
      freed_ ? std::max(work_->pass_and_own_gradients() + units + (work_->asked().each ? unsent_ : 0.0),
                        form.update + unsent_)
             : std::max(work_->pass_and_gradients() + units, form.gradients + form.update);
  if (!replicas_.strategy().gather_late || units_.empty()) return;
  const double forward = form.kept + gathered(true);  // where one more is there
  form.pass = std::max(form.pass, forward);
  form.pass_and_gradients = std::max(form.pass_and_gradients, forward);
}

// Those that a step reads, and the next one, which is on its way unless it is gathered late; of what comes from outside
// the rank's part of one more.
double StageFormula::gathered(bool forward) const {
  const bool ahead = forward || !replicas_.strategy().gather_late;
  double most = 0;
  std::vector<std::size_t> open;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    std::erase_if(open, [&](std::size_t other) { return units_[other].steps.end <= units_[u].steps.begin; });
    double here = units_[u].bytes;
    for (const std::size_t other : open) here += units_[other].bytes;
    if (ahead && u > 0 && std::ranges::find(open, u - 1) == open.end()) here += units_[u - 1].bytes;
    const std::size_t brought = ahead ? 2 : 1;
    if (u >= brought && units_[u - brought].gather.brought) here += units_[u - brought].part;
    most = std::max(most, here);
    open.push_back(u);
  }
  return most;
}

}  // namespace sibyl::closed
