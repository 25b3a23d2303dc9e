#include "oracle/closed/stage_form.h"

#include <algorithm>

namespace sibyl::closed {

StageFormula::StageFormula(ProgramTable& table, UpdatePrices& updates, Replicas& replicas, Slowdown slowdown)
    : table_(table),
      updates_(updates),
      replicas_(replicas),
      slowdown_(slowdown),
      dispatch_(table.kernels().cluster().kernels.device().dispatch.value()),
      together_(table.kernels().cluster().kernels.device().backend == Backend::cuda) {
  for (const std::vector<MeshAxis>& over : table.summed_over()) {
    std::vector<MeshAxis> axes = replicas.axes(over);
    const int parts = replicas.parts(axes);
    order_.push_back(summed_.size());
    summed_.push_back({std::move(axes), parts, {}});
  }
  std::ranges::sort(order_, {}, [&](std::size_t index) { return summed_[index].axes; });
}

StageForm StageFormula::stage(const StageWork& work) {
  prepare(work);
  const Asked& asked = work.asked();
  StageForm form;
  form.forward = turn({.forward = true}, work.forward());
  if (asked.split) form.input = turn({.forward = false, .weights = false}, work.input());
  for (const bool first : {true, false})
    for (const bool last : {true, false}) {
      // The first is the last where it is the only one.
      if ((first && last) != (replicas_.strategy().accumulation == 1)) continue;
      const StagePass pass{.forward = false, .inputs = !asked.split, .weights = true, .first = first, .last = last};
      const std::size_t slot = slot_of(first, last);
      form.backward[slot] = turn(pass, work.backward(slot));
    }
  form.alone = work.alone();
  add_tail(form);
  add_memory(form);
  return form;
}

StageForm::Turns StageFormula::turn(const StagePass& pass, const StageWork::Run& run) {
  if (!units_.empty()) return streams(std::span(&pass, 1), run.waits());
  if (pass.forward || !pass.weights || !pass.last || messages_.empty()) return {run.time, 0};
  return run.waits() ? streams(std::span(&pass, 1), true) : with_messages(pass, run);
}

StageForm::Turns StageFormula::with_messages(const StagePass& last, const StageWork::Run& run) {
  const double busy = run.time - run.waited;
  const std::vector<double>& done_by = work_->done_by(last.first);
  ready_.clear();
  durations_.clear();
  for (const Message& message : messages_) {
    ready_.emplace_back(message.overlapped ? run.before + done_by[message.step - work_->range().begin] : busy);
    durations_.emplace_back(message.seconds);
  }
  const StreamEnds ends = closed_streams(Seconds{busy}, ready_, durations_, slowdown_);
  return {ends.compute.value() + run.waited, durations_.empty() ? 0 : ends.messages.value() + run.waited};
}

namespace {

// Tasks and messages of one stage after the other; tasks between two events may be one.
class Streams {
 public:
  Streams(double dispatch, bool one_by_one, std::size_t units)
      : dispatch_(dispatch), one_by_one_(one_by_one), gathered_(units, 0), there_(units, 0) {}

  void task(double seconds, int launches) {
    open_ += seconds;
    issue_ += dispatch_ * launches;
    if (one_by_one_) close();
  }
  void send(double seconds) {
    close();
    messages_.push_back({Seconds{seconds}, tasks_.empty() ? Message::at_once : tasks_.size() - 1});
  }
  // Tasks from here on wait for the unit; the next one is then on its way.
  void enter(std::size_t unit, double copy, double gather) {
    close();
    ask(unit, copy, gather);
    needed_ = std::max(needed_, gathered_[unit]);
  }
  void ask(std::size_t unit, double copy, double gather) {
    if (there_[unit] != 0) return;
    if (copy > 0) task(copy, 1);
    send(gather);
    gathered_[unit] = messages_.size();
    there_[unit] = 1;
  }
  void leave(std::size_t unit) { there_[unit] = 0; }
  void has(std::size_t unit) { there_[unit] = 1; }

  StreamsResult run(Slowdown slowdown) {
    close();
    return run_streams(tasks_, messages_, slowdown);
  }

 private:
  void close() {
    if (open_ > 0 || issue_ > 0) tasks_.push_back({Seconds{open_}, Seconds{one_by_one_ ? issue_ : 0.0}, needed_});
    open_ = issue_ = 0;
  }

  double dispatch_, open_ = 0, issue_ = 0;
  bool one_by_one_;
  std::vector<Task> tasks_;
  std::vector<Message> messages_;
  std::size_t needed_ = 0;
  std::vector<std::size_t> gathered_;  // by unit: the messages after which it is there
  std::vector<char> there_;            // or on its way
};

}  // namespace

StageForm::Turns StageFormula::streams(std::span<const StagePass> passes, bool one_by_one) {
  Streams streams(dispatch_, one_by_one, units_.size());
  const Range range = work_->range();
  // What every step reads stays from forward to backward where no other stage comes between (zero.h, stays_gathered).
  const auto stays = [&](const Unit& unit) {
    return work_->asked().alone && unit.steps.begin == range.begin && unit.steps.end == range.end;
  };
  for (std::size_t u = 0; !passes.front().forward && u < units_.size(); ++u)
    if (stays(units_[u])) streams.has(u);
  for (const StagePass& pass : passes) {
    const std::size_t units = units_.size();
    std::size_t next = 0, entered = 0, left = 0;
    const auto begun = [&](std::size_t i) {
      for (; entered < units; ++entered) {
        const std::size_t u = pass.forward ? entered : by_end_[units - 1 - entered];
        if (pass.forward ? units_[u].steps.begin != i : units_[u].steps.end != i + 1) return;
        streams.enter(u, units_[u].copy, units_[u].gather);
        const std::size_t then = pass.forward ? u + 1 : u - 1;  // of the first none
        if (then < units) streams.ask(then, units_[then].copy, units_[then].gather);
      }
    };
    const auto done = [&](std::size_t i) {
      for (; left < units; ++left) {
        const std::size_t u = pass.forward ? by_end_[left] : units - 1 - left;
        if (pass.forward ? units_[u].steps.end != i + 1 : units_[u].steps.begin != i) break;
        if (!pass.forward || !stays(units_[u])) streams.leave(u);
      }
      if (pass.forward || !pass.weights || !pass.last) return;
      const auto complete = [&](const Message& m) { return i == range.begin || (m.overlapped && m.step >= i); };
      for (; next < messages_.size() && complete(messages_[next]); ++next) streams.send(messages_[next].seconds);
    };
    work_->each_task(
        pass, [&](double seconds, int launches) { streams.task(seconds, launches); }, begun, done);
  }
  const StreamsResult result = streams.run(slowdown_);
  return {result.compute_end.value(), result.message_end.value()};
}

StageForm::Turns StageFormula::step(StageWork& work, std::int64_t micro_batches) {
  constexpr std::int64_t walked = StageWork::most_walked;  // later ones are like the one before
  prepare(work);
  const StageForm::Turns most = passes(work, std::min(micro_batches, walked));
  if (micro_batches <= walked) return most;
  const double more = (most.time - passes(work, walked - 1).time) * static_cast<double>(micro_batches - walked);
  return {most.time + more, most.messages + more};
}

StageForm::Turns StageFormula::passes(StageWork& work, std::int64_t micro_batches) {
  const StageWork::Run& run = work.step(micro_batches);
  const std::vector<StagePass> all = StageWork::passes(micro_batches);
  if (!units_.empty() || (run.waits() && !messages_.empty())) return streams(all, run.waits());
  return with_messages(all.back(), run);
}

}  // namespace sibyl::closed
