#include "oracle/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <tuple>

#include "oracle/cost/price.h"
#include "oracle/plan/names.h"
#include "oracle/plan/plan.h"
#include "oracle/simulate/pipeline.h"
#include "oracle/simulate/step.h"

namespace sibyl {
namespace {

using Arguments = std::vector<TraceArgument>;

void add_certainty(const Estimate& estimate, Arguments& arguments) {
  arguments.push_back({"provenance", std::string(to_string(estimate.provenance))});
  arguments.push_back({"relative_error", estimate.relative_error});
}

class Writer {
 public:
  Writer(const Stage& stage, const PricedStage& priced, Backend backend)
      : stage_(stage), priced_(priced), backend_(backend) {}

  [[nodiscard]] TraceSpan written(const NamedSpan& span) const {
    const bool pass = span.kind == NamedSpan::Kind::forward || span.kind == NamedSpan::Kind::backward;
    TraceSpan result{span.name, category_of(span.kind), span.span.start, span.span.end, arguments_of(span)};
    if (pass) result.micro_batch = span.micro_batch;
    return result;
  }

 private:
  static std::string category_of(NamedSpan::Kind kind) {
    using enum NamedSpan::Kind;
    switch (kind) {
      case forward: return "forward";
      case backward: return "backward";
      case exchange_forward:
      case exchange_backward:
      case message:
      case gather:
      case unit_copy: return "communication";
      case launch: return "wait";
      case update: return "optimizer";
      case copy:
      case bring_part:
      case leave_kept:
      case bring_kept: return "offload";
    }
    return {};
  }

  [[nodiscard]] Arguments arguments_of(const NamedSpan& span) const {
    using enum NamedSpan::Kind;
    Arguments arguments;
    switch (span.kind) {
      case forward: describe(span, priced_.kernels.steps[span.index].forward, arguments); break;
      case backward: describe(span, priced_.kernels.steps[span.index].backward, arguments); break;
      case exchange_forward: describe(priced_.exchanges[span.index].forward, arguments); break;
      case exchange_backward: describe(priced_.exchanges[span.index].backward, arguments); break;
      case message: describe(priced_.messages[span.index], arguments); break;
      case gather: describe(priced_.unit_gathers[span.index], arguments); break;
      case copy: describe(priced_.copies[span.index], arguments); break;
      case bring_part: describe(priced_.brought[span.index], arguments); break;
      case leave_kept: describe(priced_.kept[span.index].out, arguments); break;
      case bring_kept: describe(priced_.kept[span.index].in, arguments); break;
      case unit_copy:
      case launch:
      case update: break;
    }
    return arguments;
  }

  void describe(const NamedSpan& span, std::optional<StageKernels::Index> kernel, Arguments& arguments) const {
    arguments.push_back({"kind", std::string(name_of(attributes_of(stage_.steps[span.index])))});
    if (!kernel) return;
    const Work work = work_of(priced_.kernels.keys[*kernel], backend_);
    arguments.push_back({"flops", work.flops.value()});
    arguments.push_back({"bytes", (work.read + work.written).value()});
    arguments.push_back(
        {"bound_by", std::string(priced_.prices[*kernel].bound == Bound::compute ? "compute" : "memory")});
    add_certainty(priced_.prices[*kernel].estimate.time, arguments);
  }

  static void describe(const std::optional<CollectiveEstimate>& transfer, Arguments& arguments) {
    if (!transfer) return;
    arguments.push_back({"algorithm", std::string(to_string(transfer->algorithm))});
    add_certainty(transfer->time, arguments);
  }

  static void describe(const PricedMessage& message, Arguments& arguments) {
    arguments.push_back({"bytes", message.bytes.value()});
    arguments.push_back({"algorithm", std::string(to_string(message.estimate.algorithm))});
    add_certainty(message.estimate.time, arguments);
  }

  static void describe(const PricedCopy& copy, Arguments& arguments) {
    arguments.push_back({"bytes", copy.bytes.value()});
    add_certainty(copy.estimate, arguments);
  }

  const Stage& stage_;
  const PricedStage& priced_;
  Backend backend_;
};

// A process's, in the order in which they are shown.
constexpr std::array shown_tracks{turns_track,         sends_track,  compute_track,
                                  communication_track, copies_track, host_track};
using TrackNumber = std::uint32_t;
TrackNumber number_of(std::string_view track) {
  return static_cast<TrackNumber>(std::ranges::find(shown_tracks, track) - shown_tracks.begin());
}

struct SpanPlace {
  static constexpr TrackNumber not_shown = static_cast<TrackNumber>(-1);  // a moment
  std::uint32_t process = 0;
  TrackNumber track = not_shown;
  std::size_t span = 0;
};

// Spans of all processes, and what each of them waited for.
class Chain {
 public:
  static constexpr std::size_t none = NamedSpan::nothing;

  std::size_t add(Seconds end, std::size_t after, SpanPlace place = {}) {
    links_.push_back({end, after, place});
    return links_.size() - 1;
  }
  void follow(std::size_t link, std::size_t after) { links_[link].after = after; }
  void make_room(std::size_t links) { links_.reserve(links_.size() + links); }
  [[nodiscard]] Seconds end(std::size_t link) const { return link == none ? Seconds{} : links_[link].end; }
  [[nodiscard]] std::size_t later(std::size_t a, std::size_t b) const {
    if (a == none || b == none) return a == none ? b : a;
    return links_[b].end > links_[a].end ? b : a;
  }

  void mark(std::vector<TraceProcess>& processes, std::size_t last) const {
    for (std::size_t link = last; link != none; link = links_[link].after) {
      const SpanPlace& place = links_[link].place;
      if (place.track != SpanPlace::not_shown)
        processes[place.process].tracks[place.track].spans[place.span].critical = true;
    }
  }

 private:
  struct Link {
    Seconds end;
    std::size_t after = none;
    SpanPlace place;
  };
  std::vector<Link> links_;
};

// Differences of sums: anything below a nanosecond is rounding.
constexpr Seconds least{1e-9};

class ProcessWriter {
 public:
  // Ranks that do the same begin with `rank`. `number`: of the process.
  ProcessWriter(int rank, int alike, const std::string& part, std::size_t number, Chain& chain)
      : process_{TraceSource::predicted, rank, {}, {}}, number_(static_cast<std::uint32_t>(number)), chain_(&chain) {
    process_.name = alike > 1 ? fmt::format("rank {} (and {} alike){}, predicted", rank, alike - 1, part)
                              : fmt::format("rank {}{}, predicted", rank, part);
    for (const std::string_view track : shown_tracks) process_.tracks.push_back({std::string(track), {}});
  }

  void make_room(TrackNumber track, std::size_t spans) { process_.tracks[track].spans.reserve(spans); }

  // Nobody waits for it.
  void show(std::string_view track, TraceSpan span) {
    process_.tracks[number_of(track)].spans.push_back(std::move(span));
  }

  // The span in the chain.
  std::size_t add(std::string_view track, TraceSpan span, std::size_t after) {
    return add(number_of(track), std::move(span), after);
  }
  std::size_t add(TrackNumber track, TraceSpan span, std::size_t after) {
    std::vector<TraceSpan>& all = process_.tracks[track].spans;
    const std::size_t link = chain_->add(span.end, after, SpanPlace{number_, track, all.size()});
    all.push_back(std::move(span));
    return link;
  }

  // What the prediction adds after the rank's own work is done, which began at `begin` and ends with `last`.
  std::size_t add_waits(const Prediction& prediction, std::size_t last, Seconds begin = {}) {
    const Seconds done = chain_->end(last), samples = prediction.breakdown.io;
    const Seconds end = begin + prediction.step_time, others = end - samples - done;
    if (others > least) last = add(host_track, {"wait for the slowest rank", "wait", done, done + others, {}}, last);
    if (samples > least) last = add(host_track, {"wait for samples", "wait", end - samples, end, {}}, last);
    return last;
  }

  TraceProcess finish() { return std::move(process_); }

 private:
  TraceProcess process_;
  std::uint32_t number_;
  Chain* chain_;
};

void erase_empty_tracks(std::vector<TraceProcess>& processes) {
  for (TraceProcess& process : processes)
    std::erase_if(process.tracks, [](const TraceTrack& track) { return track.spans.empty(); });
}

// The spans with what they waited for, in the chain: each its link. What could begin at once follows `before`.
// Cancelled: not all of them.
std::vector<std::size_t> add_all(const std::vector<NamedSpan>& spans, const Writer& writer, std::size_t before,
                                 ProcessWriter& process, Chain& chain, const Cancelled& cancelled) {
  std::vector<std::size_t> links;
  for (const NamedSpan& span : spans) {
    if (is_true(cancelled)) return links;
    links.push_back(process.add(span.track, writer.written(span), before));
  }
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (spans[i].after != NamedSpan::nothing) chain.follow(links[i], links[spans[i].after]);
  return links;
}

std::vector<TraceProcess> trace_stage(const Graph& graph, const PlannedStep& step, Backend backend,
                                      const Cancelled& cancelled) {
  const Stage& stage = step.plan.stages.front();
  const PricedStage& priced = step.priced.front();
  const Writer writer(stage, priced, backend);
  Chain chain;
  ProcessWriter process(0, step.plan.mesh.size(), "", 0, chain);
  std::size_t last = Chain::none;
  const auto spans = timeline(graph, stage, priced, step.slowdown, cancelled);
  for (const std::size_t link : add_all(spans, writer, Chain::none, process, chain, cancelled))
    last = chain.later(last, link);
  last = process.add_waits(step.prediction, last);
  std::vector<TraceProcess> processes;
  processes.push_back(process.finish());
  chain.mark(processes, last);
  return processes;
}

// A process for each coordinate: beside its kernels and messages the turns themselves, and what it sends to its
// neighbours.
class PipelineWriter {
 public:
  // `kernels`: of turns what they are made of is shown, too.
  PipelineWriter(const Graph& graph, const PlannedStep& step, Backend backend, bool kernels, const Cancelled& cancelled)
      : kernels_(kernels),
        cancelled_(cancelled),
        graph_(graph),
        plan_(step.plan),
        backend_(backend),
        slowdown_(step.slowdown),
        priced_(step.priced),
        pipeline_(*step.pipeline),
        prediction_(step.prediction),
        done_(pipeline_.coordinates.size(), Chain::none) {}

  // Cancelled: nothing.
  std::vector<TraceProcess> write() {
    const int alike = plan_.mesh.size() / plan_.mesh.size(MeshAxis::pipeline);
    for (std::size_t c = 0; c < done_.size(); ++c) {
      const int rank = static_cast<int>(c) * plan_.mesh.stride(MeshAxis::pipeline);
      processes_.emplace_back(rank, alike, fmt::format(", pipeline device {}", c), c, chain_);
      add_step_before(c);
    }
    if (kernels_) make_room();
    for (std::size_t c = 0; c < done_.size(); ++c) add_turns(c);
    if (is_true(cancelled_)) return {};
    for (const Begun& turn : begun_) chain_.follow(turn.link, chain_.later(turn.before, arrival(turn.turn)));
    add_shared_parameters();
    add_updates();
    std::vector<TraceProcess> result;
    for (std::size_t c = 0; c < done_.size(); ++c) {
      done_[c] = processes_[c].add_waits(prediction_, done_[c], pipeline_.coordinates[c].begin);
      result.push_back(processes_[c].finish());
    }
    // From one beginning of the first coordinate's step to the next, where others end later.
    const bool overtaken = pipeline_.coordinates[pipeline_.slowest].begin > least;
    chain_.mark(result, done_[overtaken ? 0 : pipeline_.slowest]);
    return result;
  }

 private:
  // A turn's beginning, and the end of the one before it on its coordinate.
  struct Begun {
    Turn turn;
    std::size_t link, before;
  };
  using Sent = std::tuple<bool, int, int>;  // forward, from this stage, of this micro-batch

  void add_step_before(std::size_t c) {
    const Seconds begin = pipeline_.coordinates[c].begin;
    before_.push_back(Chain::none);
    if (begin > least)
      before_.back() = processes_[c].add(host_track, {"the step before", "wait", {}, begin, {}}, Chain::none);
  }

  void add_turns(std::size_t c) {
    // The neighbour asks for nothing before it has begun.
    std::size_t free = before_[c], sent_forward = before_[(c + 1) % before_.size()], sent_backward = Chain::none;
    for (const TimedTurn& timed : pipeline_.coordinates[c].turns) {
      if (is_true(cancelled_)) return;
      const bool forward = timed.turn.kind == Turn::Kind::forward;
      TraceSpan shown{turn_name(timed.turn), "turn", timed.span.start, timed.span.end, {}};
      const std::size_t begin = chain_.add(timed.span.start, free);
      begun_.push_back({timed.turn, begin, free});
      if (kernels_) processes_[c].show(turns_track, std::move(shown));
      free = kernels_ ? add_kernels(timed, c, begin) : processes_[c].add(turns_track, std::move(shown), begin);
      std::size_t& channel = forward ? sent_forward : sent_backward;
      std::size_t sent = free;
      if (timed.sent.end > timed.sent.start)
        sent = channel = processes_[c].add(
            sends_track, {send_name(timed.turn), "communication", timed.sent.start, timed.sent.end, {}},
            chain_.later(free, channel));
      if (timed.turn.kind != Turn::Kind::backward_weight)
        sent_[{forward, timed.turn.stage, timed.turn.micro_batch}] = sent;
    }
    done_[c] = chain_.later(done_[c], free);
  }

  // What all turns of a stage show that are of one kind and place, but for when.
  struct Shape {
    std::vector<NamedSpan> spans;
    std::vector<TraceSpan> written;
    std::vector<TrackNumber> tracks;
    std::array<std::size_t, shown_tracks.size()> on_track{};  // how many spans
  };
  const Shape& shape_of(const TimedTurn& timed) {
    const auto s = static_cast<std::size_t>(timed.turn.stage);
    const auto [entry, added] = shapes_.try_emplace({s, timed.turn.kind, timed.place.first, timed.place.last});
    Shape& shape = entry->second;
    if (!added) return shape;
    const Writer writer(plan_.stages[s], priced_[s], backend_);
    shape.spans = turn_timeline(graph_, plan_.stages[s], priced_[s], slowdown_, timed.turn, timed.place);
    for (const NamedSpan& span : shape.spans) {
      shape.written.push_back(writer.written(span));
      shape.tracks.push_back(number_of(span.track));
      ++shape.on_track[shape.tracks.back()];
    }
    return shape;
  }

  // For the spans of all turns, of which there are many, and the few that follow them.
  void make_room() {
    constexpr std::size_t of_a_turn = 2;  // links beside its spans': its beginning, and what it sends
    constexpr std::size_t others = 8;
    std::size_t links = others * done_.size();
    for (std::size_t c = 0; c < done_.size(); ++c) {
      std::array<std::size_t, shown_tracks.size()> spans{};
      for (const TimedTurn& timed : pipeline_.coordinates[c].turns) {
        const Shape& shape = shape_of(timed);
        for (std::size_t track = 0; track < spans.size(); ++track) spans[track] += shape.on_track[track];
        links += shape.spans.size() + of_a_turn;
      }
      for (TrackNumber track = 0; track < spans.size(); ++track)
        if (spans[track] > 0) processes_[c].make_room(track, spans[track] + others);
    }
    chain_.make_room(links);
  }

  // The link after which its rank is free again; its messages may take longer.
  std::size_t add_kernels(const TimedTurn& timed, std::size_t c, std::size_t begin) {
    const Shape& shape = shape_of(timed);
    std::vector<std::size_t> links;
    links.reserve(shape.spans.size());
    std::size_t free = begin;
    for (std::size_t i = 0; i < shape.spans.size(); ++i) {
      const NamedSpan& span = shape.spans[i];
      TraceSpan shown = shape.written[i];
      if (shown.micro_batch) shown.micro_batch = timed.turn.micro_batch;
      const Span when = in_step(timed, span);
      shown.start = when.start, shown.end = when.end;
      links.push_back(processes_[c].add(shape.tracks[i], std::move(shown), begin));
      const bool message = span.kind == NamedSpan::Kind::message || span.kind == NamedSpan::Kind::gather;
      (message ? done_[c] : free) = chain_.later(message ? done_[c] : free, links[i]);
    }
    for (std::size_t i = 0; i < links.size(); ++i)
      if (const std::size_t after = shape.spans[i].after; after != NamedSpan::nothing)
        chain_.follow(links[i], links[after]);
    return free;
  }

  [[nodiscard]] std::size_t arrival(const Turn& turn) const {
    const bool forward = turn.kind == Turn::Kind::forward;
    if (turn.kind == Turn::Kind::backward_weight) return Chain::none;
    const auto found = sent_.find({forward, turn.stage + (forward ? -1 : 1), turn.micro_batch});
    return found == sent_.end() ? Chain::none : found->second;
  }

  // Gradients of parameters that several stages hold, exchanged when all of these have theirs; without kernels, all
  // that are exchanged after the last turn.
  void add_shared_parameters() {
    const std::vector<std::size_t> ended = done_;
    for (std::size_t s = 0; s < priced_.size(); ++s) {
      const std::size_t c = s % done_.size();
      std::size_t ready = ended[c];
      for (const PricedMessage& message : priced_[s].messages)
        for (const int other : message.stages)
          ready = chain_.later(ready, ended[static_cast<std::size_t>(other) % done_.size()]);
      const Seconds end = pipeline_.coordinates[c].end() - pipeline_.coordinates[c].tail.total();
      if (end - chain_.end(chain_.later(ready, done_[c])) <= least) continue;
      const std::string_view name = kernels_ ? shared_parameters_name : gradients_name;
      done_[c] = processes_[c].add(communication_track,
                                   {std::string(name), "communication", chain_.end(ready), end, {}}, ready);
    }
  }

  // In two parts where the norm of all gradients is waited for.
  void add_updates() {
    std::size_t norms = Chain::none;
    for (std::size_t c = 0; c < done_.size(); ++c) {
      const CoordinateTimes& own = pipeline_.coordinates[c];
      const Seconds start = own.end() - own.tail.total();
      if (own.tail.before.value() > 0) update(c, start, start + own.tail.before, done_[c]);
      norms = chain_.later(norms, done_[c]);
    }
    for (std::size_t c = 0; c < done_.size(); ++c) {
      const CoordinateTimes& own = pipeline_.coordinates[c];
      update(c, own.end() - own.tail.after, own.end(), own.tail.before.value() > 0 ? norms : done_[c]);
    }
  }

  void update(std::size_t c, Seconds start, Seconds end, std::size_t after) {
    if (end > start)
      done_[c] = processes_[c].add(compute_track, {std::string(optimizer_name), "optimizer", start, end, {}}, after);
  }

  bool kernels_;
  const Cancelled& cancelled_;
  const Graph& graph_;
  const Plan& plan_;
  Backend backend_;
  Slowdown slowdown_;
  const std::vector<PricedStage>& priced_;
  const SimulatedPipeline& pipeline_;
  const Prediction& prediction_;
  Chain chain_;
  std::vector<ProcessWriter> processes_;  // by coordinate
  std::vector<std::size_t> before_;       // by coordinate: until it begins
  std::vector<std::size_t> done_;         // by coordinate: the last of its links
  std::vector<Begun> begun_;
  std::map<Sent, std::size_t> sent_;
  std::map<std::tuple<std::size_t, Turn::Kind, bool, bool>, Shape> shapes_;
};

// How many kernels a step has, over the stages' turns.
std::size_t kernels_in(const Plan& plan) {
  std::size_t count = 0;
  for (const Stage& stage : plan.stages) count += stage.steps.size() * stage.schedule.size();
  return count;
}

}  // namespace

Result<PredictedTrace> trace_step(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                                  std::size_t most, const Cancelled& cancelled) {
  SIBYL_TRY(PlannedStep step, Evaluator(graph, cluster).step(strategy, cancelled));
  const std::size_t kernels = kernels_in(step.plan);
  if (!step.pipeline && kernels > most)
    return fail(ErrorCode::infeasible,
                fmt::format("the step has {} kernels, and at most {} can be shown", kernels, most), "",
                "fewer micro-batches are a shorter step of the same kind");
  const Backend backend = cluster.kernels.device().backend;
  PredictedTrace trace;
  trace.processes = step.pipeline ? PipelineWriter(graph, step, backend, kernels <= most, cancelled).write()
                                  : trace_stage(graph, step, backend, cancelled);
  if (is_true(cancelled)) return interrupted();
  erase_empty_tracks(trace.processes);
  trace.prediction = std::move(step.prediction);
  return trace;
}

}  // namespace sibyl
