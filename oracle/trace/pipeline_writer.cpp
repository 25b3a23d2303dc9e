#include "oracle/trace/pipeline_writer.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <tuple>

#include "oracle/simulate/pipeline.h"
#include "oracle/simulate/step.h"
#include "oracle/trace/process_writer.h"
#include "oracle/trace/span_words.h"

namespace sibyl {
namespace {

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
    const bool overtaken = pipeline_.coordinates[pipeline_.slowest].begin > negligible;
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
    if (begin > negligible)
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
    const SpanWords words(plan_.stages[s], priced_[s], backend_);
    shape.spans = turn_timeline(graph_, plan_.stages[s], priced_[s], slowdown_, timed.turn, timed.place);
    for (const NamedSpan& span : shape.spans) {
      shape.written.push_back(words.written(span));
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
      if (end - chain_.end(chain_.later(ready, done_[c])) <= negligible) continue;
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

}  // namespace

std::vector<TraceProcess> trace_pipeline(const Graph& graph, const PlannedStep& step, Backend backend, bool kernels,
                                         const Cancelled& cancelled) {
  return PipelineWriter(graph, step, backend, kernels, cancelled).write();
}

}  // namespace sibyl
