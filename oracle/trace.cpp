#include "oracle/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/cost/framework.h"
#include "oracle/cost/plan_for.h"
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
    using enum NamedSpan::Kind;
    TraceSpan result{span.name, {}, span.span.start, span.span.end, {}};
    switch (span.kind) {
      case forward:
        result.category = "forward";
        describe(span, priced_.kernels.steps[span.index].forward, result.arguments);
        break;
      case backward:
        result.category = "backward";
        describe(span, priced_.kernels.steps[span.index].backward, result.arguments);
        break;
      case exchange_forward:
        result.category = "communication";
        describe(priced_.exchanges[span.index].forward, result.arguments);
        break;
      case exchange_backward:
        result.category = "communication";
        describe(priced_.exchanges[span.index].backward, result.arguments);
        break;
      case message:
        result.category = "communication";
        describe(priced_.messages[span.index], result.arguments);
        break;
      case gather:
        result.category = "communication";
        describe(priced_.unit_gathers[span.index], result.arguments);
        break;
      case launch: result.category = "wait"; break;
      case update: result.category = "optimizer"; break;
    }
    return result;
  }

 private:
  void describe(const NamedSpan& span, std::optional<StageKernels::Index> kernel, Arguments& arguments) const {
    arguments.push_back({"kind", std::string(name_of(attributes_of(stage_.steps[span.index])))});
    arguments.push_back({"micro_batch", std::int64_t{span.micro_batch}});
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

  const Stage& stage_;
  const PricedStage& priced_;
  Backend backend_;
};

// What the prediction adds after the rank's own work is done.
void add_waits(const Prediction& prediction, Seconds done, std::vector<TraceSpan>& spans) {
  const Seconds samples = prediction.breakdown.io, others = prediction.step_time - samples - done;
  // Differences of sums: anything below a nanosecond is rounding.
  constexpr Seconds least{1e-9};
  if (others > least) spans.push_back({"wait for the slowest rank", "wait", done, done + others, {}});
  if (samples > least)
    spans.push_back({"wait for samples", "wait", prediction.step_time - samples, prediction.step_time, {}});
}

class ProcessWriter {
 public:
  // Ranks that do the same begin with `rank`.
  ProcessWriter(int rank, int alike, const std::string& part) : process_{TraceSource::predicted, rank, {}, {}} {
    process_.name = alike > 1 ? fmt::format("rank {} (and {} alike){}, predicted", rank, alike - 1, part)
                              : fmt::format("rank {}{}, predicted", rank, part);
    for (const std::string_view track : {compute_track, communication_track, host_track})
      process_.tracks.push_back({std::string(track), {}});
  }

  void add(std::string_view track, TraceSpan span) {
    done_ = std::max(done_, span.end);
    std::ranges::find(process_.tracks, track, &TraceTrack::name)->spans.push_back(std::move(span));
  }

  TraceProcess finish(const Prediction& prediction) {
    add_waits(prediction, done_, process_.tracks.back().spans);
    std::erase_if(process_.tracks, [](const TraceTrack& track) { return track.spans.empty(); });
    return std::move(process_);
  }

  void add_track(std::string_view name) { process_.tracks.insert(process_.tracks.begin(), {std::string(name), {}}); }
  [[nodiscard]] Seconds done() const { return done_; }

 private:
  TraceProcess process_;
  Seconds done_;
};

TraceProcess process_of(const Graph& graph, const Plan& plan, const Cluster& cluster, const Prediction& prediction) {
  const Stage& stage = plan.stages.front();
  const PricedStage priced = price(plan, stage, cluster);
  const Slowdown slowdown = slowdown_of(plan.strategy, cluster);
  const Writer writer(stage, priced, cluster.kernels.device().backend);
  ProcessWriter process(0, plan.mesh.size(), "");
  for (const NamedSpan& span : timeline(graph, stage, priced, slowdown)) process.add(span.track, writer.written(span));
  return process.finish(prediction);
}

// One coordinate of a pipeline: beside its kernels and messages the turns themselves, and what it sends to its neighbours.
TraceProcess process_of(const Graph& graph, const Plan& plan, const std::vector<PricedStage>& priced,
                        const SimulatedPipeline& pipeline, std::size_t coordinate, const Cluster& cluster,
                        const Prediction& prediction) {
  const Slowdown slowdown = slowdown_of(plan.strategy, cluster);
  const int rank = static_cast<int>(coordinate) * plan.mesh.stride(MeshAxis::pipeline);
  const int alike = plan.mesh.size() / plan.mesh.size(MeshAxis::pipeline);
  ProcessWriter process(rank, alike, fmt::format(", pipeline device {}", coordinate));
  process.add_track(sends_track);
  process.add_track(turns_track);
  const CoordinateTimes& own = pipeline.coordinates[coordinate];
  for (const TimedTurn& timed : own.turns) {
    const auto s = static_cast<std::size_t>(timed.turn.stage);
    process.add(turns_track, {turn_name(timed.turn), "turn", timed.span.start, timed.span.end, {}});
    if (timed.sent.end > timed.sent.start)
      process.add(sends_track, {send_name(timed.turn), "communication", timed.sent.start, timed.sent.end, {}});
    const Writer writer(plan.stages[s], priced[s], cluster.kernels.device().backend);
    for (NamedSpan span : turn_timeline(graph, plan.stages[s], priced[s], slowdown, timed.turn, timed.place)) {
      span.micro_batch = timed.turn.micro_batch;
      span.span.start += timed.span.start;
      span.span.end += timed.span.start;
      process.add(span.track, writer.written(span));
    }
  }
  const Seconds end = process.done(), total = own.step.total;
  const auto update = [&](Seconds start, Seconds until) {
    if (until > start) process.add(compute_track, {std::string(optimizer_name), "optimizer", start, until, {}});
  };
  if (own.tail.wait.value() > 0) update(end, end + own.tail.before);
  update(own.tail.wait.value() > 0 ? total - own.tail.after : end, total);
  return process.finish(prediction);
}

}  // namespace

Result<PredictedTrace> trace_step(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  SIBYL_TRY(Prediction prediction, predict(graph, strategy, cluster));
  SIBYL_TRY(const Plan plan, plan_for(graph, strategy, cluster));
  PredictedTrace trace;
  if (plan.stages.size() == 1) {
    trace.processes.push_back(process_of(graph, plan, cluster, prediction));
  } else {
    const std::vector<PricedStage> priced = price(plan, cluster);
    const SimulatedPipeline pipeline = simulate_pipeline(plan, priced, slowdown_of(strategy, cluster));
    for (std::size_t c = 0; c < plan.schedule.size(); ++c)
      trace.processes.push_back(process_of(graph, plan, priced, pipeline, c, cluster, prediction));
  }
  trace.prediction = std::move(prediction);
  return trace;
}

}  // namespace sibyl
