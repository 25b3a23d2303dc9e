#include "oracle/simulate/step.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/plan/names.h"

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
  };
  std::vector<Origin> origins;  // of each task
  std::size_t forward_tasks = 0;
  Seconds forward, backward, tail;  // compute only; tail: after all messages (copies back and updates)
  Seconds exchanged;                // waited for between operations
  Seconds copies_back;
  std::size_t tail_kernels = 0;
};

class ProgramBuilder {
 public:
  ProgramBuilder(const Stage& stage, const PricedStage& priced, const Relief& relief)
      : stage_(stage), priced_(priced), relief_(relief) {}

  Program build() {
    std::vector<std::size_t> backward_task(stage_.steps.size(), 0);
    const std::size_t turns = stage_.schedule.size();
    for (std::size_t t = 0; t < turns; ++t) {
      const bool first = stage_.schedule[t].micro_batch == 0, last = t + 1 == turns;
      turn_ = stage_.schedule[t];
      if (turn_.kind == Turn::Kind::forward)
        forward();
      else
        backward(first, last, backward_task);
    }
    for (const PricedMessage& m : priced_.messages) {
      const std::size_t after = priced_.overlapped ? backward_task[m.ready_after] : program_.tasks.size() - 1;
      program_.messages.push_back({m.estimate.time.time * relief_.network, after});
    }
    for (const auto key : priced_.kernels.copies_back) program_.copies_back += time(key);
    for (const auto key : priced_.kernels.updates) program_.tail += time(key);
    program_.tail += program_.copies_back;
    program_.tail_kernels = priced_.kernels.copies_back.size() + priced_.kernels.updates.size();
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

  void add(Seconds duration, std::size_t kernels, std::size_t step) {
    program_.tasks.push_back({duration, priced_.dispatch * static_cast<double>(kernels) * relief_.host});
    program_.origins.push_back({step, turn_, false});
    (turn_.kind == Turn::Kind::forward ? program_.forward : program_.backward) += duration;
  }

  // Computation waits for it as for a kernel of its own.
  void exchange(const std::optional<CollectiveEstimate>& transfer, std::size_t step) {
    if (!transfer) return;
    const Seconds duration = transfer->time.time * relief_.network;
    program_.tasks.push_back({duration, Seconds{}});
    program_.origins.push_back({step, turn_, true});
    program_.exchanged += duration;
  }

  void forward() {
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
      exchange(priced_.exchanges[i].forward, i);
      if (const auto kernel = priced_.kernels.steps[i].forward)
        add(time(*kernel) + priced_.overhead * relief_.host, 1, i);
    }
  }

  void backward(bool first, bool last, std::vector<std::size_t>& task_of) {
    for (std::size_t i = stage_.steps.size(); i-- > 0;) {
      const StageKernels::OfStep& kernels = priced_.kernels.steps[i];
      exchange(priced_.exchanges[i].backward, i);
      if (!kernels.backward && kernels.sums.empty() && kernels.bucket_copies.empty()) {
        task_of[i] = program_.tasks.empty() ? 0 : program_.tasks.size() - 1;
        continue;
      }
      Seconds duration = (kernels.backward ? time(*kernels.backward) : Seconds{}) + sum(kernels.sums);
      std::size_t count = (kernels.backward ? 1U : 0U) + kernels.sums.size();
      if (!first) duration += sum(kernels.parameter_sums), count += kernels.parameter_sums.size();
      if (last) duration += sum(kernels.bucket_copies), count += kernels.bucket_copies.size();
      task_of[i] = program_.tasks.size();
      add(duration, count, i);
    }
  }

  const Stage& stage_;
  const PricedStage& priced_;
  Relief relief_;
  Turn turn_;
  Program program_;
};

SimulatedStep times_of(const Program& program, Seconds compute_end, Seconds message_end, Seconds host_wait, Seconds tail_wait) {
  SimulatedStep times;
  times.breakdown.forward = program.forward;
  times.breakdown.backward = compute_end - program.forward - program.exchanged - host_wait;
  times.breakdown.optimizer = program.tail;
  for (const Message& message : program.messages) times.breakdown.communication_total += message.duration;
  times.breakdown.communication_total += program.exchanged;
  times.breakdown.communication_exposed = std::max(Seconds{}, message_end - compute_end) + program.exchanged;
  times.breakdown.host = host_wait + tail_wait;
  times.total = std::max(compute_end, message_end) + program.tail + tail_wait;
  return times;
}

// Launches of the tail's kernels that outlast them.
Seconds tail_wait(const Program& program, const PricedStage& priced, double relief) {
  const Seconds issue = priced.dispatch * static_cast<double>(program.tail_kernels) * relief;
  return std::max(Seconds{}, issue - program.tail);
}

}  // namespace

SimulatedStep simulate_step(const Stage& stage, const PricedStage& priced, Slowdown slowdown, const Relief& relief) {
  const Program program = ProgramBuilder(stage, priced, relief).build();
  const StreamsResult run = run_streams(program.tasks, program.messages, slowdown);
  return times_of(program, run.compute_end, run.message_end, run.host_wait, tail_wait(program, priced, relief.host));
}

SimulatedStep closed_step(const Stage& stage, const PricedStage& priced, Slowdown slowdown) {
  const Program program = ProgramBuilder(stage, priced, {}).build();
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
  const Seconds message_end = ends.messages.value() > 0 ? ends.messages + host_wait : Seconds{};
  return times_of(program, ends.compute + host_wait, message_end, host_wait, tail_wait(program, priced, 1.0));
}

std::vector<NamedSpan> timeline(const Graph& graph, const Stage& stage, const PricedStage& priced, Slowdown slowdown) {
  using Kind = NamedSpan::Kind;
  const Program program = ProgramBuilder(stage, priced, {}).build();
  const StreamsResult run = run_streams(program.tasks, program.messages, slowdown);
  std::vector<NamedSpan> spans;
  Seconds free;  // the device has nothing more to do
  for (std::size_t i = 0; i < program.tasks.size(); ++i) {
    const auto& [step, turn, exchange] = program.origins[i];
    const std::string name = pass_name(graph, stage, stage.steps[step], turn.kind);
    if (exchange) {
      const Kind way = turn.kind == Turn::Kind::forward ? Kind::exchange_forward : Kind::exchange_backward;
      spans.push_back({name, communication_track, run.tasks[i], way, step, turn.micro_batch});
      free = run.tasks[i].end;
      continue;
    }
    const Kind kind = turn.kind == Turn::Kind::forward ? Kind::forward : Kind::backward;
    if (run.tasks[i].start > free)
      spans.push_back(
          {"launch " + name, host_track, {free, run.tasks[i].start}, Kind::launch, step, turn.micro_batch});
    spans.push_back({name, compute_track, run.tasks[i], kind, step, turn.micro_batch});
    free = run.tasks[i].end;
  }
  for (std::size_t i = 0; i < program.messages.size(); ++i)
    spans.push_back({bucket_name(i), communication_track, run.messages[i], Kind::message, i, 0});
  const Seconds tail = std::max(run.compute_end, run.message_end);
  const Seconds copied = tail + program.copies_back, end = tail + program.tail;
  if (copied > tail) spans.push_back({std::string(copies_back_name), compute_track, {tail, copied}, Kind::update, 0, 0});
  if (end > copied) spans.push_back({std::string(optimizer_name), compute_track, {copied, end}, Kind::update, 0, 0});
  if (const Seconds wait = tail_wait(program, priced, 1.0); wait.value() > 0)
    spans.push_back({fmt::format("launch {}", optimizer_name), host_track, {end, end + wait}, Kind::launch, 0, 0});
  return spans;
}

}  // namespace sibyl
