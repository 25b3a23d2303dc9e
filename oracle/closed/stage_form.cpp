#include "oracle/closed/stage_form.h"

#include <algorithm>
#include <utility>

#include "oracle/cost/framework.h"

namespace sibyl::closed {

StageFormula::StageFormula(ProgramTable& table, UpdatePrices& updates, Replicas& replicas, Slowdown slowdown)
    : table_(table),
      replicas_(replicas),
      slowdown_(slowdown),
      dispatch_(table.kernels().cluster().kernels.device().dispatch.value()),
      bare_(bare_launch(table.kernels().cluster().kernels.device())),
      copies_(replicas.strategy(), table.kernels().cluster()),
      updates_(updates, replicas.strategy(), table.kernels().cluster()) {
  for (const std::vector<MeshAxis>& over : table.summed_over()) {
    std::vector<MeshAxis> axes = replicas.axes(over);
    const int parts = replicas.parts(axes);
    order_.push_back(summed_.size());
    summed_.push_back({std::move(axes), parts, {}});
  }
  std::ranges::sort(order_, {}, [&](std::size_t index) { return summed_[index].axes; });
  if (replicas.strategy().clip > 0) clip_norm_ = sum_norm();
}

StageForm StageFormula::stage(const StageWork& work) {
  prepare(work);
  const Asked& asked = work.asked();
  StageForm form;
  if (!asked.alone) add_turns(form);
  for (const Message& message : messages_) {
    const Replicas::Sent& sent = message.sent_as;
    form.messages += sent.seconds;
    form.wires_messages.add(sent.seconds, sent.wire);
  }
  form.alone = work.alone();
  add_tail(form);
  add_memory(form);
  return form;
}

void StageFormula::add_turns(StageForm& form) {
  const Asked& asked = work_->asked();
  form.forward = turn({.forward = true}, work_->forward());
  if (asked.split) form.input = turn({.forward = false, .weights = false}, work_->input());
  for (const bool first : {true, false})
    for (const bool last : {true, false}) {
      // The first is the last where it is the only one.
      if ((first && last) != (replicas_.strategy().accumulation == 1)) continue;
      const StagePass pass{.forward = false, .inputs = !asked.split, .weights = true, .first = first, .last = last};
      const std::size_t slot = slot_of(first, last);
      form.backward[slot] = turn(pass, work_->backward(slot));
    }
  form.wires_forward = wires(work_->wires_forward(), {.forward = true}, work_->forward(), form.forward.time);
  if (asked.split) {
    form.wires_backward =
        wires(work_->wires_backward(), {.forward = false, .weights = false}, work_->input(), form.input.time);
    return;
  }
  const bool only = replicas_.strategy().accumulation == 1;
  const std::size_t slot = slot_of(only, only);
  form.wires_backward = wires(work_->wires_backward(), {.forward = false, .first = only, .last = only},
                              work_->backward(slot), form.backward[slot].time);
}

// As simulate_turn() has them.
TurnWires StageFormula::wires(const WireTime& exchanges, const StagePass& pass, const Run& run, double time) {
  TurnWires wires = of_exchanges(exchanges);
  WireTime gathers{};
  for (const Unit& unit : units_) gathers.add(unit.gather.sent.seconds, unit.gather.sent.wire);
  for (std::size_t wire = 0; wire < gathers.on.size(); ++wire) {
    if (gathers.on[wire].seconds <= 0) continue;
    wires.busy.on[wire].add(gathers.on[wire].seconds, gathers.on[wire].flows);
    wires.held_up[wire] = std::max(0.0, streams({}, std::span(&pass, 1), run.waits(), wire).time - time);
  }
  return wires;
}

StageForm::Turns StageFormula::turn(const StagePass& pass, const Run& run) {
  return units_.empty() && outside_.empty() ? behind({}, pass, run) : streams({}, std::span(&pass, 1), run.waits());
}

StageForm::Turns StageFormula::behind(const Run& others, const StagePass& pass, const Run& run) {
  const Run all = others.then(run);
  if (pass.forward || !pass.weights || !pass.last || messages_.empty()) return {all.time, 0};
  return all.waits() || !compressed_.empty() ? streams(others, std::span(&pass, 1), true)
                                             : with_messages(others, pass, all);
}

StageForm::Turns StageFormula::with_messages(const Run& others, const StagePass& last, const Run& all) {
  const StageWork::LastBackward& beside = work_->last_backward(last.first);
  ready_.clear();
  for (const Message& message : messages_) {
    const double own = beside.done_by[message.step - work_->range().begin];
    ready_.push_back({Seconds{message.overlapped ? others.compute + own : all.compute},
                      Seconds{message.sent_as.seconds}, message.sent_as.wire});
  }
  const StreamEnds ends =
      closed_streams(Seconds{all.compute}, ready_, slowdown_, beside.stretches, Seconds{others.compute});
  return {ends.compute.value() + all.waited(), ends.messages.value() + all.waited()};
}

namespace {

// Tasks, messages and copies of one stage after the other; tasks between two events may be one.
class Streams {
 public:
  // Behind others, which have run for so long, and which the host has issued.
  Streams(const Run& others, double dispatch, bool one_by_one, std::size_t units, std::optional<std::size_t> shared)
      : dispatch_(dispatch),
        issued_(others.issue),
        one_by_one_(one_by_one),
        shared_(shared),
        gathered_(units, 0),
        parts_(units, 0) {
    if (others.time > 0) tasks_.push_back({Seconds{others.time}, Seconds{}});
  }

  void task(double seconds, double launches) {
    open_ += seconds;
    launches_ += launches;
    if (one_by_one_) close();
  }
  // The same step's: the host issues them with the last ones.
  void more_of_task(const Kernels& kernels) {
    if (!one_by_one_) return task(kernels.seconds, kernels.launches);
    tasks_.back().duration += Seconds{kernels.seconds};
    tasks_.back().issue += Seconds{dispatch_ * kernels.launches};
  }
  void exchange(const Exchanged& exchange) {
    close();
    open_ = exchange.seconds + longer(exchange.seconds - exchange.wait, exchange.wire);
    launches_ = 1;
    push();
    tasks_.back().wire = exchange.wire;
    tasks_.back().wait = Seconds{exchange.wait};
  }
  void send(const Replicas::Sent& sent) {
    close();
    messages_.push_back({Seconds{sent.seconds}, last_task(), sent.wire});
  }
  // Once all messages are there.
  void add_up(const Kernels& kernels) {
    close();
    needed_ = messages_.size();
    task(kernels.seconds, kernels.launches);
  }
  // The number of copies so far, with it.
  std::size_t copy(double seconds) {
    close();
    copies_.push_back({Seconds{seconds}, last_task()});
    return copies_.size();
  }
  void wait_for_copies(std::size_t first) {
    close();
    needed_copies_ = std::max(needed_copies_, first);
  }
  // Tasks from here on wait for the unit.
  void enter(std::size_t unit, const Gathering& gather) {
    close();
    ask(unit, gather);
    needed_ = std::max(needed_, gathered_[unit]);
  }
  // It is on its way from here on, and before that the rank's part of it that lies outside.
  void ask(std::size_t unit, const Gathering& gather) {
    if (gathered_[unit] != 0) return;
    bring(unit, gather);
    if (gather.brought) wait_for_copies(std::exchange(parts_[unit], 0));
    if (gather.copy > 0 || gather.brought) {
      open_ += gather.copy;
      launches_ += gather.copy > 0 ? 1 : 0;
      if (one_by_one_ || gather.brought) push();
    }
    send({gather.sent.seconds + longer(gather.sent.seconds, gather.sent.wire), gather.sent.wire});
    gathered_[unit] = messages_.size();
  }
  void bring(std::size_t unit, const Gathering& gather) {
    if (gather.brought && gathered_[unit] == 0 && parts_[unit] == 0) parts_[unit] = copy(*gather.brought);
  }
  void leave(std::size_t unit) { gathered_[unit] = 0; }

  // Over when the copies are that were waited for.
  StageForm::Turns run(const Slowdown& slowdown) {
    close();
    const StreamsResult result = run_streams(tasks_, messages_, slowdown, copies_);
    const Seconds copied = needed_copies_ == 0 ? Seconds{} : result.copies[needed_copies_ - 1].end;
    return {std::max(result.compute_end, copied).value(), result.message_end.value()};
  }

 private:
  [[nodiscard]] double longer(double seconds, const WireUse& wire) const {
    return shared_ == wire_of(wire) ? seconds * wire.busy : 0.0;
  }
  void close() {
    if (launches_ > 0) push();
  }
  void push() {
    issued_ += dispatch_ * launches_;
    tasks_.push_back({Seconds{open_}, Seconds{one_by_one_ ? issued_ : 0.0}, needed_, needed_copies_});
    open_ = issued_ = 0;
    launches_ = 0;
  }
  [[nodiscard]] std::size_t last_task() const { return tasks_.empty() ? Message::at_once : tasks_.size() - 1; }

  double dispatch_;
  double issued_;  // by the host, before the task that is open
  double open_ = 0;
  double launches_ = 0;
  bool one_by_one_;
  std::optional<std::size_t> shared_;
  std::vector<Task> tasks_;
  std::vector<Message> messages_, copies_;
  std::size_t needed_ = 0, needed_copies_ = 0;
  std::vector<std::size_t> gathered_;  // by unit: the messages after which it is there; 0: it is not on its way
  std::vector<std::size_t> parts_;     // likewise the copies after which the rank's part is
};

}  // namespace

StageForm::Turns StageFormula::streams(const Run& others, std::span<const StagePass> passes, bool one_by_one,
                                       std::optional<std::size_t> shared) {
  Streams streams(others, dispatch_, one_by_one, units_.size(), shared);
  const Range range = work_->range();
  // What every step reads stays from forward to backward where no other stage comes between (zero.h, stays_gathered).
  const auto stays = [&](const Unit& unit) {
    return work_->asked().alone && unit.steps.begin == range.begin && unit.steps.end == range.end;
  };
  const bool late = replicas_.strategy().gather_late, each = work_->asked().each;
  for (const StagePass& pass : passes) {
    const std::size_t units = units_.size();
    const std::size_t ahead = late && !pass.forward ? 0 : 1;
    std::size_t next = 0, entered = 0, left = 0, complete_ones = 0;
    const bool reads = pass.forward || pass.inputs;  // gradients of weights read no parameter
    std::size_t kept = pass.forward ? 0 : outside_.size(), moved = 0;  // of `outside_`; copies with that which moves it
    const auto bring_before = [&](std::size_t segment) {
      if (segment > 0) moved = streams.copy(outside_[segment - 1].in);
    };
    if (!pass.forward && reads) bring_before(kept);
    const auto begun = [&](std::size_t i) {
      for (; reads && entered < units; ++entered) {
        const std::size_t u = pass.forward ? entered : by_end_[units - 1 - entered];
        if (pass.forward ? units_[u].steps.begin != i : units_[u].steps.end != i + 1) break;
        streams.enter(u, units_[u].gather);
        const auto further = [&](std::size_t by) { return pass.forward ? u + by : u - by; };  // of the first none
        if (ahead > 0 && further(1) < units) streams.ask(further(1), units_[further(1)].gather);
        if (const std::size_t behind = further(ahead + 1); behind < units) streams.bring(behind, units_[behind].gather);
      }
      if (pass.forward && kept < outside_.size() && outside_[kept].steps.begin == i)
        moved = streams.copy(outside_[kept].out);
      if (pass.forward || !reads || kept == 0 || outside_[kept - 1].steps.end != i + 1) return;
      streams.wait_for_copies(moved);
      bring_before(--kept);
    };
    const auto done = [&](std::size_t i) {
      if (pass.forward && kept < outside_.size() && outside_[kept].steps.end == i + 1) {
        streams.wait_for_copies(moved);
        ++kept;
      }
      for (; left < units; ++left) {
        const std::size_t u = pass.forward ? by_end_[left] : units - 1 - left;
        if (pass.forward ? units_[u].steps.end != i + 1 : units_[u].steps.begin != i) break;
        if (!pass.forward || !stays(units_[u])) streams.leave(u);
      }
      const bool sends = !pass.forward && pass.weights && (pass.last || each);
      for (; sends && complete_ones < compressed_.size() && compressed_[complete_ones].step >= i; ++complete_ones)
        streams.more_of_task(compressed_[complete_ones].kernels);
      for (std::size_t e = entered; ahead == 0 && reads && e < units; ++e) {
        const std::size_t u = by_end_[units - 1 - e];
        if (units_[u].steps.end != i) break;
        streams.ask(u, units_[u].gather);
      }
      if (!sends) return;
      const auto complete = [&](const Message& m) { return i == range.begin || (m.overlapped && m.step >= i); };
      for (; next < messages_.size() && complete(messages_[next]); ++next) streams.send(messages_[next].sent_as);
    };
    work_->each_task(
        pass, [&](double seconds, double launches) { streams.task(seconds, launches); },
        [&](const Exchanged& exchange) { streams.exchange(exchange); }, begun, done);
    if (each && !pass.forward && !pass.last) streams.add_up(part_sums_);
  }
  return streams.run(slowdown_);
}

StageForm::Turns StageFormula::step(const StageWork& work, std::int64_t micro_batches) {
  prepare(work);
  const StagePass last{.forward = false, .first = micro_batches == 1, .last = true};
  const Run before = work.before_last(micro_batches);
  const Run& own = work.backward(slot_of(last.first, last.last));
  return units_.empty() && outside_.empty() && !work.asked().each
             ? behind(before, last, own)
             : event_by_event(micro_batches, before.then(own).waits());
}

double StageFormula::least_step(const StageWork& work, std::int64_t micro_batches) const {
  const Run all = work.before_last(micro_batches).then(work.backward(slot_of(micro_batches == 1, true)));
  constexpr double rounding = 1e-9;
  return (all.waits() ? all.time : all.compute) * (1 - rounding);
}

StageForm::Turns StageFormula::event_by_event(std::int64_t micro_batches, bool one_by_one) {
  constexpr std::int64_t walked = 4;  // later ones are like the one before
  const auto first_ones = [&](std::int64_t count) {
    std::vector<StagePass> passes;
    for (std::int64_t m = 0; m < count; ++m) {
      passes.push_back({.forward = true});
      passes.push_back({.forward = false, .first = m == 0, .last = m + 1 == count});
    }
    return streams({}, passes, one_by_one);
  };
  const StageForm::Turns most = first_ones(std::min(micro_batches, walked));
  if (micro_batches <= walked) return most;
  const double more = (most.time - first_ones(walked - 1).time) * static_cast<double>(micro_batches - walked);
  return {most.time + more, most.messages + more};
}

}  // namespace sibyl::closed
