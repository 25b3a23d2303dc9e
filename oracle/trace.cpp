#include "oracle/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/cost/price.h"
#include "oracle/plan/names.h"
#include "oracle/plan/plan.h"
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

TraceProcess process_of(const Graph& graph, const Plan& plan, std::size_t stage_index, const Cluster& cluster,
                        const Prediction& prediction) {
  const Stage& stage = plan.stages[stage_index];
  const PricedStage priced = price(plan, stage, cluster);
  const Slowdown slowdown{cluster.overlap.compute_slowdown, cluster.overlap.communication_slowdown};
  const Writer writer(stage, priced, cluster.kernels.device().backend);
  const int alike = plan.mesh.size() / static_cast<int>(plan.stages.size());
  const int rank = alike * static_cast<int>(stage_index);

  TraceProcess process{TraceSource::predicted, rank, {}, {}};
  process.name = alike > 1 ? fmt::format("rank {} (and {} alike), predicted", rank, alike - 1)
                           : fmt::format("rank {}, predicted", rank);
  for (const std::string_view track : {compute_track, communication_track, host_track})
    process.tracks.push_back({std::string(track), {}});
  Seconds done;
  for (const NamedSpan& span : timeline(graph, stage, priced, slowdown)) {
    const auto track = std::ranges::find(process.tracks, span.track, &TraceTrack::name);
    track->spans.push_back(writer.written(span));
    done = std::max(done, span.span.end);
  }
  add_waits(prediction, done, process.tracks.back().spans);
  std::erase_if(process.tracks, [](const TraceTrack& track) { return track.spans.empty(); });
  return process;
}

}  // namespace

Result<PredictedTrace> trace_step(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  SIBYL_TRY(Prediction prediction, predict(graph, strategy, cluster));
  SIBYL_TRY(const Plan plan, make_plan(graph, strategy));
  PredictedTrace trace;
  for (std::size_t i = 0; i < plan.stages.size(); ++i)
    trace.processes.push_back(process_of(graph, plan, i, cluster, prediction));
  trace.prediction = std::move(prediction);
  return trace;
}

}  // namespace sibyl
