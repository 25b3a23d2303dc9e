#include "oracle/simulate/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "oracle/plan/names.h"
#include "oracle/plan/zero.h"

namespace sibyl {
namespace {

// The tasks of a step in order, and where its parts end.
struct Program {
  std::vector<Task> tasks;
  std::vector<Message> messages;
  struct Origin {
    std::size_t step = 0;
    Turn turn;
    bool exchange = false;
    bool again = false;  // forward, for backward's sake
  };
  std::vector<Origin> origins;  // of each task
  struct Sent {
    bool unit = false;  // gathered; else a bucket
    std::size_t index = 0;
  };
  std::vector<Sent> sent;  // of each message
  std::size_t forward_tasks = 0;
  Seconds forward, backward, tail;  // compute only; tail: after all messages (copies back and updates)
  Seconds exchanged;                // waited for between operations
  Seconds copies_back;
  std::optional<Seconds> norm;  // of the tail: until that over all stages can be summed
  Seconds tail_messages;
  std::size_t tail_kernels = 0;
  bool waits = false;  // some task needs a message
};

class ProgramBuilder {
 public:
  ProgramBuilder(const Stage& stage, const PricedStage& priced, const Relief& relief)
      : stage_(stage), priced_(priced), relief_(relief), gathered_(stage.units.size(), 0) {}

  Program build() {
    const std::size_t turns = stage_.schedule.size();
    for (std::size_t t = 0; t < turns; ++t)
      add_turn(stage_.schedule[t], {stage_.schedule[t].micro_batch == 0, t + 1 == turns});
    send_buckets(0);
    add_tail();
    return std::move(program_);
  }

  // Of one turn alone, with the messages that it hands out; no tail.
  Program build(Turn turn, Place place) {
    add_turn(turn, place);
    const bool closes = turn.kind == Turn::Kind::backward || turn.kind == Turn::Kind::backward_weight;
    if (place.last && closes) send_buckets(0);
    return std::move(program_);
  }

  Program tail() {
    add_tail();
    return std::move(program_);
  }

 private:
  [[nodiscard]] Seconds time(StageKernels::Index key) const {
    const bool arithmetic = priced_.prices[key].bound == Bound::compute;
    return priced_.time(key) * (arithmetic ? relief_.compute_bound : relief_.memory_bound);
  }
  [[nodiscard]] Seconds sum(const std::vector<StageKernels::Index>& keys) const {
    Seconds total;
    for (const auto key : keys) total += time(key);
    return total;
  }

  void add_tail() {
    const StageKernels& kernels = priced_.kernels;
    program_.copies_back = sum(kernels.copies_back);
    program_.tail_kernels = kernels.copies_back.size();
    for (const auto* work : {&kernels.masters, &kernels.unscale, &kernels.norms, &kernels.clips, &kernels.updates}) {
      program_.tail += sum(*work);
      program_.tail_kernels += work->size();
    }
    program_.tail += program_.copies_back;
    if (stage_.clip && std::ranges::count(stage_.clip->axes, MeshAxis::pipeline) > 0)
      program_.norm = program_.copies_back + sum(kernels.unscale) + sum(kernels.norms);
    for (const auto& norm : {priced_.clip_norm, priced_.tensor_norms})
      if (norm) program_.tail_messages += norm->time.time;
    for (const PricedMessage& gather : priced_.gathers) program_.tail_messages += gather.estimate.time.time;
    program_.tail_messages *= relief_.network;
  }

  void send(const PricedMessage& message, Program::Sent what) {
    const std::size_t after = program_.tasks.empty() ? Message::at_once : program_.tasks.size() - 1;
    program_.messages.push_back({message.estimate.time.time * relief_.network, after});
    program_.sent.push_back(what);
  }

  // In their order, each as soon as the step before which it is complete has run backward; those that do not overlap at
  // the end. Those of parameters that other stages hold too are not the stage's own to send.
  void send_buckets(std::size_t step) {
    const auto complete = [&](const PricedMessage& m) { return step == 0 || (m.overlapped && m.ready_after >= step); };
    for (; next_bucket_ < priced_.messages.size() && complete(priced_.messages[next_bucket_]); ++next_bucket_)
      if (priced_.messages[next_bucket_].stages.empty()) send(priced_.messages[next_bucket_], {false, next_bucket_});
  }

  void gather(std::size_t unit) {
    if (unit >= stage_.units.size() || gathered_[unit] != 0) return;
    send(priced_.unit_gathers[unit], {true, unit});
    gathered_[unit] = program_.messages.size();
  }

  // The unit's first task waits until it is gathered; the next ones are then on their way.
  void enter(std::size_t unit, bool forward) {
    gather(unit);
    needed_ = std::max(needed_, gathered_[unit]);
    for (std::size_t n = 1; n <= static_cast<std::size_t>(stage_.units[unit].ahead); ++n)
      if (forward || n <= unit) gather(forward ? unit + n : unit - n);
  }

  void leave(std::size_t unit) { gathered_[unit] = 0; }

  void add(Seconds duration, std::size_t kernels, std::size_t step, bool again = false) {
    program_.tasks.push_back({duration, priced_.dispatch * static_cast<double>(kernels) * relief_.host, needed_});
    program_.waits = program_.waits || needed_ > 0;
    program_.origins.push_back({step, turn_, false, again});
    (turn_.kind == Turn::Kind::forward ? program_.forward : program_.backward) += duration;
  }

  // Computation waits for it as for a kernel of its own, and the host issues it as one.
  void exchange(const std::optional<CollectiveEstimate>& transfer, Seconds wait, std::size_t step, bool again = false) {
    if (!transfer) return;
    const Seconds duration = wait + transfer->time.time * relief_.network;
    program_.tasks.push_back({duration, priced_.dispatch * relief_.host, needed_});
    program_.origins.push_back({step, turn_, true, again});
    program_.exchanged += duration;
  }

  void add_turn(Turn turn, Place place) {
    turn_ = turn;
    if (turn.kind == Turn::Kind::forward)
      forward();
    else
      backward(place);
  }

  void forward() {
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
      for (std::size_t u = 0; u < stage_.units.size(); ++u)
        if (stage_.units[u].begin == i) enter(u, true);
      forward(i, false);
      for (std::size_t u = 0; u < stage_.units.size(); ++u)
        if (stage_.units[u].end == i + 1 && !stays_gathered(stage_, stage_.units[u])) leave(u);
    }
  }

  void forward(std::size_t step, bool again) {
    exchange(priced_.exchanges[step].forward, priced_.exchanges[step].wait.forward, step, again);
    if (const auto kernel = priced_.kernels.steps[step].forward)
      add(time(*kernel) + priced_.overhead * relief_.host, 1, step, again);
  }

  void backward(Place place) {
    const bool inputs = turn_.kind != Turn::Kind::backward_weight;
    for (std::size_t i = stage_.steps.size(); i-- > 0;) {
      for (std::size_t u = stage_.units.size(); u-- > 0;)
        if (stage_.units[u].end == i + 1) enter(u, false);
      for (const Segment& segment : stage_.recomputed)
        for (std::size_t s = segment.begin; inputs && segment.end == i + 1 && s < segment.end; ++s) forward(s, true);
      if (inputs) exchange(priced_.exchanges[i].backward, priced_.exchanges[i].wait.backward, i);
      differentiate(i, place);
      for (std::size_t u = 0; u < stage_.units.size(); ++u)
        if (stage_.units[u].begin == i) leave(u);
      if (place.last && i > 0 && turn_.kind != Turn::Kind::backward_input) send_buckets(i);
    }
  }

  // A backward in one turn is both its parts.
  void differentiate(std::size_t step, Place place) {
    const StageKernels::OfStep& kernels = priced_.kernels.steps[step];
    const bool inputs = turn_.kind != Turn::Kind::backward_weight, weights = turn_.kind != Turn::Kind::backward_input;
    Seconds duration;
    std::size_t count = 0;
    const auto run = [&](const std::vector<StageKernels::Index>& keys) {
      duration += sum(keys);
      count += keys.size();
    };
    if (inputs) {
      if (kernels.backward) duration += time(*kernels.backward), ++count;
      run(kernels.sums);
    }
    if (weights) {
      if (kernels.backward_weight) duration += time(*kernels.backward_weight), ++count;
      if (!place.first) run(kernels.parameter_sums);
      if (place.last) run(kernels.bucket_copies);
    }
    if (count > 0) add(duration, count, step);
  }

  const Stage& stage_;
  const PricedStage& priced_;
  Relief relief_;
  Turn turn_;
  std::size_t next_bucket_ = 0;
  std::vector<std::size_t> gathered_;  // by unit: the number of messages sent with it; 0: it is not gathered
  std::size_t needed_ = 0;             // messages that tasks to come wait for
  Program program_;
};

SimulatedStep times_of(const Program& program, Seconds compute_end, Seconds message_end, Seconds host_wait,
                       Seconds message_wait, Seconds tail_wait) {
  SimulatedStep times;
  times.breakdown.forward = program.forward;
  times.breakdown.backward = compute_end - program.forward - program.exchanged - host_wait - message_wait;
  times.breakdown.optimizer = program.tail;
  for (const Message& message : program.messages) times.breakdown.communication_total += message.duration;
  times.breakdown.communication_total += program.exchanged + program.tail_messages;
  times.breakdown.communication_exposed =
      std::max(Seconds{}, message_end - compute_end) + program.exchanged + message_wait + program.tail_messages;
  times.breakdown.host = host_wait + tail_wait;
  times.total = std::max(compute_end, message_end) + program.tail + tail_wait + program.tail_messages;
  return times;
}

// Launches of the tail's kernels that outlast them.
Seconds tail_wait(const Program& program, const PricedStage& priced, double relief) {
  const Seconds issue = priced.dispatch * static_cast<double>(program.tail_kernels) * relief;
  return std::max(Seconds{}, issue - program.tail);
}

}  // namespace

namespace {

SimulatedStep simulated(const Program& program, const PricedStage& priced, Slowdown slowdown, const Relief& relief) {
  const StreamsResult run = run_streams(program.tasks, program.messages, slowdown);
  return times_of(program, run.compute_end, run.message_end, run.host_wait, run.message_wait,
                  tail_wait(program, priced, relief.host));
}

}  // namespace

SimulatedStep simulate_step(const Stage& stage, const PricedStage& priced, Slowdown slowdown, const Relief& relief) {
  return simulated(ProgramBuilder(stage, priced, relief).build(), priced, slowdown, relief);
}

namespace {

// Where both streams end, by formula.
struct Ends {
  Seconds compute, messages, host_wait;
};

// None where each stream waits for the other, or where messages go on while the device waits for its host, longer than can
// be neglected.
std::optional<Ends> closed_ends(const Program& program, Slowdown slowdown) {
  constexpr double negligible = 0.003;
  if (program.waits) return std::nullopt;
  std::vector<Seconds> ready, durations;
  Seconds done;
  std::size_t next = 0;
  for (const Message& message : program.messages) {
    for (; next <= message.after; ++next) done += program.tasks[next].duration;
    ready.push_back(done);
    durations.push_back(message.duration);
  }
  const Seconds busy = program.forward + program.backward + program.exchanged;
  const StreamEnds ends = closed_streams(busy, ready, durations, slowdown);
  // The host runs ahead of the device; where it cannot, the device ends after the slowest launch and all that follows it.
  Seconds issued, device;
  for (const Task& task : program.tasks) {
    issued += task.issue;
    device = std::max(device, issued) + task.duration;
  }
  const Seconds host_wait = device - busy;
  if (!program.messages.empty() && host_wait > negligible * ends.compute) return std::nullopt;
  return Ends{ends.compute + host_wait, ends.messages.value() > 0 ? ends.messages + host_wait : Seconds{}, host_wait};
}

TurnTimes turn_times(const Program& program, const StreamsResult& run) {
  return {run.compute_end, program.exchanged + run.message_wait, run.host_wait, run.message_end, run.message_wait};
}

}  // namespace

SimulatedStep closed_step(const Stage& stage, const PricedStage& priced, Slowdown slowdown) {
  const Program program = ProgramBuilder(stage, priced, {}).build();
  const auto ends = closed_ends(program, slowdown);
  if (!ends) return simulated(program, priced, slowdown, {});
  return times_of(program, ends->compute, ends->messages, ends->host_wait, Seconds{}, tail_wait(program, priced, 1.0));
}

TurnTimes simulate_turn(const Stage& stage, const PricedStage& priced, Slowdown slowdown, Turn turn, Place place,
                        const Relief& relief) {
  const Program program = ProgramBuilder(stage, priced, relief).build(turn, place);
  return turn_times(program, run_streams(program.tasks, program.messages, slowdown));
}

TurnTimes closed_turn(const Stage& stage, const PricedStage& priced, Slowdown slowdown, Turn turn, Place place) {
  const Program program = ProgramBuilder(stage, priced, {}).build(turn, place);
  const auto ends = closed_ends(program, slowdown);
  if (!ends) return turn_times(program, run_streams(program.tasks, program.messages, slowdown));
  return {ends->compute, program.exchanged, ends->host_wait, ends->messages};
}

TailTimes tail_times(const Stage& stage, const PricedStage& priced, const Relief& relief) {
  const Program program = ProgramBuilder(stage, priced, relief).tail();
  const Seconds wait = tail_wait(program, priced, relief.host);
  return {program.tail + wait + program.tail_messages, wait, program.tail_messages, program.norm};
}

namespace {

// Of two spans that a third one may have waited for the one that ended last.
std::size_t later(const std::vector<NamedSpan>& spans, std::size_t a, std::size_t b) {
  if (a == NamedSpan::nothing || b == NamedSpan::nothing) return a == NamedSpan::nothing ? b : a;
  return spans[b].span.end > spans[a].span.end ? b : a;
}

class SpanWriter {
 public:
  SpanWriter(const Graph& graph, const Stage& stage, const PricedStage& priced, const Program& program,
             const StreamsResult& run)
      : graph_(graph), stage_(stage), priced_(priced), program_(program), run_(run) {}

  std::vector<NamedSpan> write() {
    for (std::size_t i = 0; i < program_.tasks.size(); ++i) add_task(i);
    const std::size_t first = spans_.size();
    for (std::size_t i = 0; i < program_.messages.size(); ++i) add_message(i);
    for (std::size_t i = 0; i < program_.tasks.size(); ++i) {
      NamedSpan& task = spans_[of_task_[i]];
      const std::size_t needed = program_.tasks[i].messages;
      if (needed > 0 && spans_[first + needed - 1].span.end >= task.span.start) task.after = first + needed - 1;
    }
    return std::move(spans_);
  }

 private:
  using Kind = NamedSpan::Kind;

  // Before it, where the device has nothing to do until it begins, its launch.
  void add_task(std::size_t i) {
    const auto& [step, turn, exchange, again] = program_.origins[i];
    const Turn::Kind pass = again ? Turn::Kind::forward : turn.kind;
    const bool forward = pass == Turn::Kind::forward;
    const std::string name = (again ? "recompute " : "") + pass_name(graph_, stage_, stage_.steps[step], pass);
    const Span& span = run_.tasks[i];
    std::size_t after = i == 0 ? NamedSpan::nothing : of_task_.back();
    const Seconds free = i == 0 ? Seconds{} : run_.tasks[i - 1].end;
    if (!exchange && span.start > free) {
      spans_.push_back({"launch " + name, host_track, {free, span.start}, Kind::launch, step, turn.micro_batch, after});
      after = spans_.size() - 1;
    }
    of_task_.push_back(spans_.size());
    const Kind kind = exchange ? (forward ? Kind::exchange_forward : Kind::exchange_backward)
                               : (forward ? Kind::forward : Kind::backward);
    spans_.push_back({name, exchange ? communication_track : compute_track, span, kind, step, turn.micro_batch, after});
  }

  void add_message(std::size_t i) {
    const auto& [unit, index] = program_.sent[i];
    const std::string name = unit ? unit_name(index) : bucket_name(index, priced_.messages[index].scattered);
    const std::size_t before = i == 0 ? NamedSpan::nothing : spans_.size() - 1;
    const std::size_t task = program_.messages[i].after;
    const std::size_t ready = task == Message::at_once ? NamedSpan::nothing : of_task_[task];
    spans_.push_back({name, communication_track, run_.messages[i], unit ? Kind::gather : Kind::message, index, 0,
                      later(spans_, ready, before)});
  }

  const Graph& graph_;
  const Stage& stage_;
  const PricedStage& priced_;
  const Program& program_;
  const StreamsResult& run_;
  std::vector<NamedSpan> spans_;
  std::vector<std::size_t> of_task_;  // its span
};

}  // namespace

std::vector<NamedSpan> turn_timeline(const Graph& graph, const Stage& stage, const PricedStage& priced,
                                     Slowdown slowdown, Turn turn, Place place) {
  const Program program = ProgramBuilder(stage, priced, {}).build(turn, place);
  const StreamsResult run = run_streams(program.tasks, program.messages, slowdown);
  return SpanWriter(graph, stage, priced, program, run).write();
}

std::vector<NamedSpan> timeline(const Graph& graph, const Stage& stage, const PricedStage& priced, Slowdown slowdown) {
  using Kind = NamedSpan::Kind;
  const Program program = ProgramBuilder(stage, priced, {}).build();
  const StreamsResult run = run_streams(program.tasks, program.messages, slowdown);
  std::vector<NamedSpan> spans = SpanWriter(graph, stage, priced, program, run).write();
  std::size_t last = NamedSpan::nothing;
  for (std::size_t i = 0; i < spans.size(); ++i) last = later(spans, last, i);
  const auto then = [&](std::string name, std::string_view track, Span span, Kind kind) {
    if (!(span.end > span.start)) return;
    spans.push_back({std::move(name), track, span, kind, 0, 0, last});
    last = spans.size() - 1;
  };
  const Seconds tail = std::max(run.compute_end, run.message_end);
  const Seconds copied = tail + program.copies_back, end = tail + program.tail;
  const Seconds told = end + program.tail_messages, launched = told + tail_wait(program, priced, 1.0);
  then(std::string(copies_back_name), compute_track, {tail, copied}, Kind::update);
  then(std::string(optimizer_name), compute_track, {copied, end}, Kind::update);
  then(std::string(gather_name), communication_track, {end, told}, Kind::update);
  then(fmt::format("launch {}", optimizer_name), host_track, {told, launched}, Kind::launch);
  return spans;
}

}  // namespace sibyl
