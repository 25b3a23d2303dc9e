#include "oracle/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/plan/plan.h"
#include "oracle/simulate/step.h"
#include "oracle/trace/pipeline_writer.h"
#include "oracle/trace/process_writer.h"
#include "oracle/trace/span_words.h"

namespace sibyl {
namespace {

void erase_empty_tracks(std::vector<TraceProcess>& processes) {
  for (TraceProcess& process : processes)
    std::erase_if(process.tracks, [](const TraceTrack& track) { return track.spans.empty(); });
}

// The spans with what they waited for, in the chain: each its link. What could begin at once follows `before`.
// Cancelled: not all of them.
std::vector<std::size_t> add_all(const std::vector<NamedSpan>& spans, const SpanWords& words, std::size_t before,
                                 ProcessWriter& process, Chain& chain, const Cancelled& cancelled) {
  std::vector<std::size_t> links;
  for (const NamedSpan& span : spans) {
    if (is_true(cancelled)) return links;
    links.push_back(process.add(span.track, words.written(span), before));
  }
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (spans[i].after != NamedSpan::nothing) chain.follow(links[i], links[spans[i].after]);
  return links;
}

std::vector<TraceProcess> trace_stage(const Graph& graph, const PlannedStep& step, Backend backend,
                                      const Cancelled& cancelled) {
  const Stage& stage = step.plan.stages.front();
  const PricedStage& priced = step.priced.front();
  const SpanWords words(stage, priced, backend);
  Chain chain;
  ProcessWriter process(0, step.plan.mesh.size(), "", 0, chain);
  std::size_t last = Chain::none;
  const auto spans = timeline(graph, stage, priced, step.slowdown, cancelled);
  for (const std::size_t link : add_all(spans, words, Chain::none, process, chain, cancelled))
    last = chain.later(last, link);
  last = process.add_waits(step.prediction, last);
  std::vector<TraceProcess> processes;
  processes.push_back(process.finish());
  chain.mark(processes, last);
  return processes;
}

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
  trace.processes = step.pipeline ? trace_pipeline(graph, step, backend, kernels <= most, cancelled)
                                  : trace_stage(graph, step, backend, cancelled);
  if (is_true(cancelled)) return interrupted();
  erase_empty_tracks(trace.processes);
  trace.prediction = std::move(step.prediction);
  return trace;
}

}  // namespace sibyl
