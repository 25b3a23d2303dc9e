#include "oracle/simulate/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "oracle/plan/names.h"
#include "oracle/simulate/offload.h"
#include "oracle/simulate/step_program.h"

namespace sibyl {
namespace {

// All exchanges by themselves.
Seconds exchanges(const StepProgram& program) {
  Seconds time;
  for (std::size_t i = 0; i < program.tasks.size(); ++i)
    if (program.origins[i].exchange) time += program.tasks[i].duration;
  return time;
}

WireTime exchange_wires(const StepProgram& program) {
  WireTime wires{};
  for (const Task& task : program.tasks)
    if (task.wire) wires.add((task.duration - task.wait).value(), *task.wire);
  return wires;
}

// What asks for a wire takes so much longer where it has half of it.
void share(StepProgram& program, std::size_t wire) {
  for (Task& task : program.tasks)
    if (task.wire && wire_of(*task.wire) == wire) task.duration += (task.duration - task.wait) * task.wire->busy;
  for (std::size_t i = 0; i < program.messages.size(); ++i)
    if (Message& message = program.messages[i]; program.sent[i].unit && wire_of(message.wire) == wire)
      message.duration += message.duration * message.wire.busy;
}

// What a stage keeps outside has left by then, that of its last segment, too.
Seconds turn_end(const StepProgram& program, const StreamsResult& run) {
  return program.needed_copies == 0 ? run.compute_end
                                    : std::max(run.compute_end, run.copies[program.needed_copies - 1].end);
}

// Where parameters are gathered meanwhile, what that is worth is asked of the streams.
TurnWires wires_of(const StepProgram& program, const StreamsResult& run, Slowdown slowdown,
                   const Cancelled& cancelled) {
  TurnWires wires = of_exchanges(exchange_wires(program));
  WireTime gathers{};
  for (std::size_t i = 0; i < program.messages.size(); ++i)
    if (program.sent[i].unit) gathers.add(program.messages[i].duration.value(), program.messages[i].wire);
  for (std::size_t wire = 0; wire < gathers.on.size(); ++wire) {
    if (gathers.on[wire].seconds <= 0) continue;
    StepProgram shared = program;
    share(shared, wire);
    const StreamsResult held = run_streams(shared.tasks, shared.messages, slowdown, shared.copies, cancelled);
    wires.busy.on[wire].add(gathers.on[wire].seconds, gathers.on[wire].flows);
    wires.held_up[wire] = std::max(0.0, (turn_end(program, held) - turn_end(program, run)).value());
  }
  return wires;
}

SimulatedStep times_of(const StepProgram& program, const StreamsResult& run, Seconds tail_wait) {
  const Seconds waited = run.host_wait + run.message_wait + run.copy_wait;
  const Seconds alone = exchanges(program), exchanged = alone + run.exchange_delay;
  SimulatedStep times;
  times.breakdown.forward = program.forward;
  times.breakdown.backward = run.compute_end - program.forward - exchanged - waited;
  times.breakdown.optimizer = program.tail;
  for (const Message& message : program.messages) times.breakdown.communication_total += message.duration;
  times.breakdown.communication_total += alone + program.hidden + program.tail_messages;
  times.breakdown.communication_exposed =
      std::max(Seconds{}, run.message_end - run.compute_end) + exchanged + run.message_wait + program.tail_messages;
  times.breakdown.host = run.host_wait + tail_wait;
  times.breakdown.offload_exposed = program.copies_waited + run.copy_wait;
  times.breakdown.offload_total = program.tail_copies;
  for (const Message& copy : program.copies) times.breakdown.offload_total += copy.duration;
  times.total = std::max(run.compute_end, run.message_end) + program.tail + tail_wait + program.copies_waited +
                program.tail_messages;
  return times;
}

// Launches of the tail's kernels that outlast them.
Seconds tail_wait(const StepProgram& program, const PricedStage& priced, double relief) {
  const Seconds issue = priced.dispatch * program.tail_launches * relief;
  return std::max(Seconds{}, issue - program.tail);
}

// Further micro-batches each add what the last of these added.
constexpr int micro_batches_walked = 64;

Stage of_micro_batches(const Stage& stage, int count) {
  Stage shorter = stage;
  std::erase_if(shorter.schedule, [&](const Turn& turn) { return turn.micro_batch >= count; });
  return shorter;
}

SimulatedStep lengthened(const SimulatedStep& step, const SimulatedStep& before, double by) {
  using T = TimeBreakdown;
  SimulatedStep result = step;
  result.total += (step.total - before.total) * by;
  for (Seconds T::*part : {&T::forward, &T::backward, &T::optimizer, &T::communication_exposed, &T::communication_total,
                           &T::bubble, &T::host, &T::io, &T::io_total, &T::offload_exposed, &T::offload_total})
    result.breakdown.*part += (step.breakdown.*part - before.breakdown.*part) * by;
  return result;
}

}  // namespace

SimulatedStep simulate_step(const Stage& stage, const PricedStage& priced, Slowdown slowdown, const Relief& relief,
                            const Cancelled& cancelled) {
  if (const int all = stage.micro_batches(); all > micro_batches_walked) {
    const auto of = [&](int count) {
      return simulate_step(of_micro_batches(stage, count), priced, slowdown, relief, cancelled);
    };
    return lengthened(of(micro_batches_walked), of(micro_batches_walked - 1), all - micro_batches_walked);
  }
  const StepProgram program = step_program(stage, priced, relief, cancelled);
  const StreamsResult run = run_streams(program.tasks, program.messages, slowdown, program.copies, cancelled);
  return times_of(program, run, tail_wait(program, priced, relief.host));
}

TurnTimes simulate_turn(const Stage& stage, const PricedStage& priced, Slowdown slowdown, Turn turn, Place place,
                        const Relief& relief, const Cancelled& cancelled) {
  const StepProgram program = turn_program(stage, priced, relief, turn, place);
  const StreamsResult run = run_streams(program.tasks, program.messages, slowdown, program.copies, cancelled);
  const Seconds alone = exchanges(program), exchanged = alone + run.exchange_delay, end = turn_end(program, run);
  TurnTimes times{end, exchanged + run.message_wait, run.host_wait, run.message_end, alone + program.hidden};
  times.copied = run.copy_wait + end - run.compute_end;
  for (const Message& copy : program.copies) times.copies += copy.duration;
  if (turn.kind != Turn::Kind::backward_weight) times.wires = wires_of(program, run, slowdown, cancelled);
  return times;
}

TailTimes tail_times(const Stage& stage, const PricedStage& priced, const Relief& relief) {
  const StepProgram program = tail_program(stage, priced, relief);
  const Seconds wait = tail_wait(program, priced, relief.host);
  return {program.tail + wait + program.copies_waited + program.tail_messages,
          wait,
          program.tail_messages,
          program.copies_waited,
          program.tail_copies,
          program.norm};
}

namespace {

// Of two spans that a third one may have waited for the one that ended last.
std::size_t later(const std::vector<NamedSpan>& spans, std::size_t a, std::size_t b) {
  if (a == NamedSpan::nothing || b == NamedSpan::nothing) return a == NamedSpan::nothing ? b : a;
  return spans[b].span.end > spans[a].span.end ? b : a;
}

class SpanWriter {
 public:
  SpanWriter(const Graph& graph, const Stage& stage, const PricedStage& priced, const StepProgram& program,
             const StreamsResult& run)
      : graph_(graph), stage_(stage), priced_(priced), program_(program), run_(run) {}

  std::vector<NamedSpan> write() {
    for (std::size_t i = 0; i < program_.tasks.size(); ++i) add_task(i);
    const std::size_t first = spans_.size();
    for (std::size_t i = 0; i < program_.messages.size(); ++i) add_message(i);
    const std::size_t first_copy = spans_.size();
    for (std::size_t i = 0; i < program_.copies.size(); ++i) add_copy(i, first_copy);
    for (std::size_t i = 0; i < program_.tasks.size(); ++i) {
      NamedSpan& task = spans_[of_task_[i]];
      for (const auto& [begin, needed] :
           {std::pair{first, program_.tasks[i].messages}, std::pair{first_copy, program_.tasks[i].copies}})
        if (needed > 0 && spans_[begin + needed - 1].span.end >= task.span.start) task.after = begin + needed - 1;
    }
    return std::move(spans_);
  }

 private:
  using Kind = NamedSpan::Kind;

  // Before it, where the device has nothing to do until it begins, its launch.
  void add_task(std::size_t i) {
    const auto& [step, turn, exchange, again, unit, sums] = program_.origins[i];
    const Turn::Kind pass = again ? Turn::Kind::forward : turn.kind;
    const bool forward = pass == Turn::Kind::forward;
    const std::string name = unit   ? unit_copy_name(*unit)
                             : sums ? std::string(part_sums_name)
                                    : (again ? "recompute " : "") + pass_name(graph_, stage_, stage_.steps[step], pass);
    const Span& span = run_.tasks[i];
    std::size_t after = i == 0 ? NamedSpan::nothing : of_task_.back();
    const Seconds free = i == 0 ? Seconds{} : run_.tasks[i - 1].end;
    if (!exchange && span.start > free) {
      spans_.push_back({"launch " + name, host_track, {free, span.start}, Kind::launch, step, turn.micro_batch, after});
      after = spans_.size() - 1;
    }
    of_task_.push_back(spans_.size());
    const Kind kind = unit       ? Kind::unit_copy
                      : sums     ? Kind::update
                      : exchange ? (forward ? Kind::exchange_forward : Kind::exchange_backward)
                                 : (forward ? Kind::forward : Kind::backward);
    spans_.push_back({name, exchange ? communication_track : compute_track, span, kind, step, turn.micro_batch, after});
  }

  void add_message(std::size_t i) {
    const auto& [unit, index] = program_.sent[i];
    const std::string name = unit ? unit_name(index) : bucket_name(index, priced_.messages[index].exchange);
    const std::size_t before = i == 0 ? NamedSpan::nothing : spans_.size() - 1;
    const std::size_t task = program_.messages[i].after;
    const std::size_t ready = task == Message::at_once ? NamedSpan::nothing : of_task_[task];
    spans_.push_back({name, communication_track, run_.messages[i], unit ? Kind::gather : Kind::message, index, 0,
                      later(spans_, ready, before)});
  }

  void add_copy(std::size_t i, std::size_t first) {
    const auto& [unit, index, way] = program_.moved[i];
    const Kind kind = unit ? Kind::bring_part : way == OffloadCopy::Way::in ? Kind::bring_kept : Kind::leave_kept;
    const std::size_t task = program_.copies[i].after;
    const std::size_t ready = task == Message::at_once ? NamedSpan::nothing : of_task_[task];
    spans_.push_back({unit ? part_name(index) : kept_name(index, way), copies_track, run_.copies[i], kind, index, 0,
                      later(spans_, ready, i == 0 ? NamedSpan::nothing : first + i - 1)});
  }

  const Graph& graph_;
  const Stage& stage_;
  const PricedStage& priced_;
  const StepProgram& program_;
  const StreamsResult& run_;
  std::vector<NamedSpan> spans_;
  std::vector<std::size_t> of_task_;  // its span
};

}  // namespace

std::vector<NamedSpan> turn_timeline(const Graph& graph, const Stage& stage, const PricedStage& priced,
                                     Slowdown slowdown, Turn turn, Place place) {
  const StepProgram program = turn_program(stage, priced, {}, turn, place);
  const StreamsResult run = run_streams(program.tasks, program.messages, slowdown, program.copies);
  return SpanWriter(graph, stage, priced, program, run).write();
}

std::vector<NamedSpan> timeline(const Graph& graph, const Stage& stage, const PricedStage& priced, Slowdown slowdown,
                                const Cancelled& cancelled) {
  using Kind = NamedSpan::Kind;
  const StepProgram program = step_program(stage, priced, {}, cancelled);
  const StreamsResult run = run_streams(program.tasks, program.messages, slowdown, program.copies, cancelled);
  if (is_true(cancelled)) return {};
  std::vector<NamedSpan> spans = SpanWriter(graph, stage, priced, program, run).write();
  std::size_t last = NamedSpan::nothing;
  for (std::size_t i = 0; i < spans.size(); ++i) last = later(spans, last, i);
  const auto then = [&](std::string name, std::string_view track, Span span, Kind kind) {
    if (!(span.end > span.start)) return;
    spans.push_back({std::move(name), track, span, kind, 0, 0, last});
    last = spans.size() - 1;
  };
  const Seconds tail = std::max(run.compute_end, run.message_end);
  const Seconds copied = tail + program.copies_back, end = tail + program.tail + program.copies_waited;
  const Seconds told = end + program.tail_messages, launched = told + tail_wait(program, priced, 1.0);
  then(std::string(copies_back_name), compute_track, {tail, copied}, Kind::update);
  if (!stage.copies.empty()) {
    const OffloadedUpdates moved = offloaded_updates(stage, priced, {});
    for (std::size_t i = 0; i < moved.copies.size(); ++i) {
      const Span span{end - moved.end + moved.copies[i].start, end - moved.end + moved.copies[i].end};
      spans.push_back({copy_name(stage.copies[i]), copies_track, span, Kind::copy, i, 0, last});
    }
  }
  then(std::string(optimizer_name), compute_track, {copied, end}, Kind::update);
  then(std::string(gather_name), communication_track, {end, told}, Kind::update);
  then(fmt::format("launch {}", optimizer_name), host_track, {told, launched}, Kind::launch);
  return spans;
}

}  // namespace sibyl
