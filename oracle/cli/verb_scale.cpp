#include <algorithm>

#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/cli/verbs.h"

namespace sibyl::cli {
namespace {

// --weak keeps each device's batch, --strong the batch of the step; without either, how --batch is written decides.
Result<Scaling> read_scaling(const Arguments& arguments, const BatchSize& batch) {
  const bool weak = arguments.has("--weak"), strong = arguments.has("--strong");
  if (weak && strong) return fail(ErrorCode::usage, "--weak and --strong exclude each other");
  if (weak && !batch.per_device)
    return fail(ErrorCode::usage, "--weak keeps the batch of each device", {}, "write --batch N/device");
  if (strong && batch.per_device)
    return fail(ErrorCode::usage, "--strong keeps the batch of the whole step", {}, "write --batch N");
  return batch.per_device ? Scaling::weak : Scaling::strong;
}

// A mistake in the model or the options spoils every count alike, and is told once.
std::optional<Error> common_failure(const ScaleReport& report) {
  const Result<Prediction>& first = report.points.front().prediction;
  if (first || first.error().code == ErrorCode::infeasible) return std::nullopt;
  for (const ScalePoint& point : report.points)
    if (point.prediction || point.prediction.error() != first.error()) return std::nullopt;
  return first.error();
}

// 0 if any count can be run; else the first reason decides.
int exit_code_of(const ScaleReport& report) {
  for (const ScalePoint& point : report.points)
    if (point.prediction && point.prediction->fits) return 0;
  const Result<Prediction>& first = report.points.front().prediction;
  return exit_code(first ? ErrorCode::infeasible : first.error().code);
}

Result<int> run_scale(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  const auto devices = arguments.text("--devices");
  if (!devices)
    return fail(ErrorCode::usage, "--devices is missing", {}, "write --devices 1,2,4,8 or --devices 1..1024");
  SIBYL_TRY(const std::vector<int> counts, parse_device_counts(*devices));
  SIBYL_TRY(const BatchSize batch, parse_batch(arguments.text("--batch").value_or("32/device")));
  SIBYL_TRY(const Scaling scaling, read_scaling(arguments, batch));
  SIBYL_TRY(const Cluster cluster, read_cluster(arguments));
  SIBYL_TRY(Strategy strategy, read_strategy(arguments, counts.front()));
  read_data_source(arguments, strategy);
  SIBYL_CHECK(read_framework(arguments, strategy));
  SIBYL_TRY(const Graph graph, load_graph_for(arguments, micro_batch_of(strategy)));
  const ScaleReport report{model_name(arguments.operands().front()), cluster.name, scaling,
                           scale(graph, strategy, cluster, counts, scaling)};
  if (auto failure = common_failure(report)) return Failure(std::move(*failure));
  switch (format) {
    case OutputFormat::json: SIBYL_CHECK(print(to_json(report))); break;
    case OutputFormat::csv: SIBYL_CHECK(print(csv(to_table(report)))); break;
    case OutputFormat::markdown: SIBYL_CHECK(print(markdown(to_table(report)))); break;
    case OutputFormat::text: SIBYL_CHECK(print(to_text(report, text_style(arguments)))); break;
  }
  return exit_code_of(report);
}

}  // namespace

Verb scale_verb() {
  Command c;
  c.name = "scale";
  c.program = "sibyl scale";
  c.summary = "say how step time, throughput and efficiency change with the number of devices";
  c.operands = "MODEL";
  c.least_operands = c.most_operands = 1;
  c.examples = {{"sibyl scale zoo:resnet50 --cluster abci-v100 --devices 1..1024 --weak --batch 64/device",
                 "1, 2, 4 … 1024 devices, 64 samples each"},
                {"sibyl scale model.onnx --cluster dgx-h100 --devices 8..256 --strong --batch 4096",
                 "the same 4096 samples over more devices"},
                {"sibyl scale model.onnx --cluster dgx-h100 --devices 1,8,64 --csv > scale.csv", "for a spreadsheet"}};
  std::vector<Option> strategy = strategy_options();
  std::erase_if(strategy, [](const Option& option) { return option.name == "--parallel"; });
  c.options =
      concatenated({{cluster_option()},
                    machine_options(),
                    {{.name = "--devices", .value = "LIST", .help = "1,2,8 or 1..64 (doubling) or 4..16:4 (in steps)"},
                     {.name = "--weak", .help = "each device keeps its batch (implied by --batch N/device)"},
                     {.name = "--strong", .help = "the step keeps its batch (implied by --batch N)"}},
                    std::move(strategy),
                    {data_option(), framework_option()},
                    model_options(),
                    table_options(),
                    output_options()});
  c.notes = "Device counts beyond the cluster's size are priced as more nodes of the same kind.";
  return {std::move(c), run_scale};
}

}  // namespace sibyl::cli
