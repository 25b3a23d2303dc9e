#include "oracle/closed/stage_form.h"

#include <algorithm>

namespace sibyl::closed {

StageFormula::StageFormula(ProgramTable& table, MemoryTable& memory, Replicas& replicas, Slowdown slowdown)
    : table_(table),
      memory_(memory),
      replicas_(replicas),
      slowdown_(slowdown),
      dispatch_(table.kernels().cluster().kernels.device().dispatch.value()),
      factor_(table.kernels().cluster().composition.factor) {}

StageForm StageFormula::stage(Range range, Recompute recompute, bool split, bool alone) {
  prepare(range, recompute, split, alone);
  StageForm form;
  form.forward = turn({.forward = true});
  if (split) form.input = turn({.forward = false, .weights = false});
  for (const bool first : {true, false})
    for (const bool last : {true, false})
      form.backward[StageForm::slot(first, last)] =
          turn({.forward = false, .inputs = !split, .weights = true, .first = first, .last = last});
  for (std::size_t i = range.begin; i < range.end; ++i) form.alone += (*rows_)[i].alone;
  add_tail(form);
  add_memory(form);
  return form;
}

void StageFormula::each_task(const Pass& pass, auto&& task, auto&& begun, auto&& done) {
  const auto forward = [&](std::size_t i) {
    const Row& row = (*rows_)[i];
    if (row.exchange_forward > 0) task(row.exchange_forward, 1);
    if (row.forward.launches > 0) task(row.forward.seconds, row.forward.launches);
  };
  if (pass.forward) {
    for (std::size_t i = range_.begin; i < range_.end; ++i) begun(i), forward(i), done(i);
    return;
  }
  auto segment = segments_.rbegin();
  for (std::size_t i = range_.end; i-- > range_.begin;) {
    begun(i);
    if (segment != segments_.rend() && segment->end == i + 1) {
      for (std::size_t s = segment->begin; pass.inputs && s < segment->end; ++s) forward(s);
      ++segment;
    }
    const Row& row = (*rows_)[i];
    Kernels sum;
    const auto add = [&](double seconds, int launches) { sum.seconds += seconds, sum.launches += launches; };
    if (pass.inputs) {
      if (row.exchange_backward > 0) task(row.exchange_backward, 1);
      add(row.backward.seconds, row.backward.launches);
    }
    if (pass.weights) add(row.backward_weight.seconds, row.backward_weight.launches);
    for (std::size_t u = table_.uses_from(i + 1); pass.weights && u < table_.uses_from(i); ++u) {
      const Use& use = table_.uses()[u];
      const Parameter& parameter = table_.parameters()[use.parameter];
      if (use.before > range_.begin) continue;
      if (!pass.first) add(parameter.sum, 1);
      if (pass.last && exchanged(parameter)) add(parameter.copy, 1);
    }
    if (sum.launches > 0) task(sum.seconds, sum.launches);
    done(i);
  }
}

double StageFormula::run(const Pass& pass, Host& host) {
  double busy = 0;
  each_task(
      pass,
      [&](double seconds, int launches) {
        host.issued += dispatch_ * launches;
        host.device = std::max(host.device, host.issued) + seconds;
        busy += seconds;
      },
      [](std::size_t) {}, [](std::size_t) {});
  return busy;
}

namespace {

constexpr double negligible = 0.003;  // of what is computed: waiting for the host

}  // namespace

StageForm::Turns StageFormula::turn(const Pass& pass) {
  Host host;
  const double busy = run(pass, host), waited = host.device - busy;
  const bool waits = waited > negligible * busy;
  if (!units_.empty()) return streams(std::span(&pass, 1), waits);
  if (pass.forward || !pass.weights || !pass.last || messages_.empty()) return {host.device, 0};
  return waits ? streams(std::span(&pass, 1), true) : with_messages(pass, 0, waited);
}

StageForm::Turns StageFormula::with_messages(const Pass& pass, double before, double waited) {
  std::vector<double> done_by(range_.end - range_.begin);  // compute done when a step's backward is
  double busy = before;
  each_task(
      pass, [&](double seconds, int) { busy += seconds; }, [](std::size_t) {},
      [&](std::size_t i) { done_by[i - range_.begin] = busy; });
  std::vector<Seconds> ready, durations;
  for (const Message& message : messages_) {
    ready.emplace_back(message.overlapped ? done_by[message.step - range_.begin] : busy);
    durations.emplace_back(message.seconds);
  }
  const StreamEnds ends = closed_streams(Seconds{busy}, ready, durations, slowdown_);
  return {ends.compute.value() + waited, durations.empty() ? 0 : ends.messages.value() + waited};
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
  void enter(std::size_t unit, double gather) {
    close();
    ask(unit, gather);
    needed_ = std::max(needed_, gathered_[unit]);
  }
  void ask(std::size_t unit, double gather) {
    if (there_[unit] != 0) return;
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

StageForm::Turns StageFormula::streams(std::span<const Pass> passes, bool one_by_one) {
  Streams streams(dispatch_, one_by_one, units_.size());
  // What every step reads stays from forward to backward where no other stage comes between (zero.h, stays_gathered).
  const auto stays = [&](const Unit& unit) {
    return alone_ && unit.steps.begin == range_.begin && unit.steps.end == range_.end;
  };
  for (std::size_t u = 0; !passes.front().forward && u < units_.size(); ++u)
    if (stays(units_[u])) streams.has(u);
  for (const Pass& pass : passes) {
    std::size_t next = 0;
    const auto begun = [&](std::size_t i) {
      if (pass.forward ? !begins_[i - range_.begin] : !ends_[i - range_.begin]) return;
      for (std::size_t n = 0; n < units_.size(); ++n) {
        const std::size_t u = pass.forward ? n : units_.size() - 1 - n;
        if (pass.forward ? units_[u].steps.begin != i : units_[u].steps.end != i + 1) continue;
        streams.enter(u, units_[u].gather);
        const std::size_t then = pass.forward ? u + 1 : u - 1;  // of the first none
        if (then < units_.size()) streams.ask(then, units_[then].gather);
      }
    };
    const auto done = [&](std::size_t i) {
      const bool over = pass.forward ? ends_[i - range_.begin] : begins_[i - range_.begin];
      for (std::size_t u = 0; over && u < units_.size(); ++u)
        if (pass.forward ? units_[u].steps.end == i + 1 && !stays(units_[u]) : units_[u].steps.begin == i)
          streams.leave(u);
      if (pass.forward || !pass.weights || !pass.last) return;
      const auto complete = [&](const Message& m) { return i == range_.begin || (m.overlapped && m.step >= i); };
      for (; next < messages_.size() && complete(messages_[next]); ++next) streams.send(messages_[next].seconds);
    };
    each_task(
        pass, [&](double seconds, int launches) { streams.task(seconds, launches); }, begun, done);
  }
  const StreamsResult result = streams.run(slowdown_);
  return {result.compute_end.value(), result.message_end.value()};
}

StageForm::Turns StageFormula::step(Range range, Recompute recompute, std::int64_t micro_batches) {
  constexpr std::int64_t walked = 4;  // later ones are like the one before
  prepare(range, recompute, false, true);
  const StageForm::Turns most = passes(std::min(micro_batches, walked));
  if (micro_batches <= walked) return most;
  const double more = (most.time - passes(walked - 1).time) * static_cast<double>(micro_batches - walked);
  return {most.time + more, most.messages + more};
}

StageForm::Turns StageFormula::passes(std::int64_t micro_batches) {
  std::vector<Pass> all;
  for (std::int64_t m = 0; m < micro_batches; ++m) {
    all.push_back({.forward = true});
    all.push_back({.forward = false, .first = m == 0, .last = m + 1 == micro_batches});
  }
  Host host;
  double busy = 0, before_last = 0;
  for (const Pass& pass : all) {
    before_last = busy;
    busy += run(pass, host);
  }
  const double waited = host.device - busy;
  const bool waits = waited > negligible * busy;
  if (!units_.empty() || (waits && !messages_.empty())) return streams(all, waits);
  return with_messages(all.back(), before_last, waited);
}

}  // namespace sibyl::closed
