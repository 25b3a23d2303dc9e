// trace: a predicted step as a timeline, alone or beside a measured one.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/cli/verbs.h"
#include "oracle/trace/trace.h"

namespace sibyl::cli {
namespace {

// The events of a trace file, one a line.
Result<std::string> events_of(const std::string& path) {
  SIBYL_TRY(const std::string text, read_text(path));
  const auto file = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!file.is_object() || !file.contains("traceEvents") || !file["traceEvents"].is_array())
    return fail("is not a trace: it has no \"traceEvents\"", path, "`sibyl train … --trace FILE` writes one");
  std::string events;
  for (const auto& event : file["traceEvents"]) events += (events.empty() ? "" : ",\n") + event.dump();
  return events;
}

Result<int> run_trace(const Arguments& arguments) {
  SIBYL_TRY(const Cluster cluster, read_cluster(arguments));
  SIBYL_TRY(const Strategy strategy, read_strategy_for(arguments, cluster));
  SIBYL_TRY(const Graph graph, load_graph_for(arguments, micro_batch_of(strategy)));
  SIBYL_TRY(const PredictedTrace trace, trace_step(graph, strategy, cluster));
  const Prediction& p = trace.prediction;
  std::vector<std::string> events;
  for (const TraceProcess& process : trace.processes) events.push_back(trace_events(process));
  if (const auto measured = arguments.text("--beside")) {
    SIBYL_TRY(std::string others, events_of(*measured));
    if (!others.empty()) events.push_back(std::move(others));
  }
  const std::string path = arguments.text("--output").value_or("-");
  const std::string file = trace_file(events, {{"model", model_name(arguments.operands().front())},
                                               {"cluster", cluster.name},
                                               {"parallel", p.parallel},
                                               {"global_batch", p.global_batch},
                                               {"precision", p.precision},
                                               {"optimizer", p.optimizer},
                                               {"step_time_s", p.step_time.value()}});
  SIBYL_CHECK(write_file(path, file, arguments.has("--force")));
  if (path != "-")
    say(fmt::format("wrote {}: a step of {}; open it in https://ui.perfetto.dev or chrome://tracing", path,
                    to_string(p.step_time)));
  if (p.fits) return 0;
  return does_not_fit(p, model_name(arguments.operands().front()), nearest_fit(graph, strategy, cluster));
}

}  // namespace

Verb trace_verb() {
  Command c;
  c.name = "trace";
  c.program = "sibyl trace";
  c.summary = "write a predicted step as a timeline for Perfetto and chrome://tracing";
  c.operands = "MODEL";
  c.least_operands = c.most_operands = 1;
  c.examples = {{"sibyl trace zoo:resnet50 --cluster dgx-a100 --devices 8 --batch 64/device -o step.json",
                 "open step.json in https://ui.perfetto.dev"},
                {"mpirun -np 2 sibyl train m.onnx --batch 8/device --trace real.json; sibyl trace m.onnx --cluster "
                 "calibration.json --devices 2 --batch 8/device --beside real.json -o both.json",
                 "the predicted and the real step below each other"}};
  c.options = concatenated(
      {study_options(),
       {{.name = "--beside", .value = "FILE", .help = "show this trace, from `sibyl train --trace`, in the same file"},
        {.name = "--output", .value = "FILE", .help = "where to; standard output unless given", .letter = 'o'},
        {.name = "--force", .help = "replace FILE if it exists"},
        {.name = "--json", .help = "what is written is JSON anyway"}}});
  c.notes = "Tracks and spans are described in docs/formats/trace.md.";
  return {std::move(c), run_trace};
}

}  // namespace sibyl::cli
