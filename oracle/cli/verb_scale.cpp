#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/cli/verbs.h"
#include "oracle/nearest_fit.h"

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

// The point nearest to fitting: where devices share most.
const ScalePoint* last_priced(const ScaleReport& report) {
  const auto priced = std::ranges::find_if(report.points.rbegin(), report.points.rend(),
                                           [](const ScalePoint& point) { return point.prediction.has_value(); });
  return priced == report.points.rend() ? nullptr : &*priced;
}

bool any_fits(const ScaleReport& report) {
  return std::ranges::any_of(report.points, [](const ScalePoint& p) { return p.prediction && p.prediction->fits; });
}

// Where no count fits: what would, and the Error that says so. Options of `sibyl scale` first; another way of splitting
// replicas, or more devices, are options of `sibyl predict` alone.
std::optional<Error> find_nearest(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                                  ScaleReport& report) {
  const ScalePoint* point = last_priced(report);
  if (any_fits(report)) return std::nullopt;
  if (!point) return report.points.front().prediction.error();
  const Strategy asked = strategy_at(strategy, point->devices, report.scaling);
  const bool strong = report.scaling == Scaling::strong;
  const auto sized = sized_for(cluster, point->devices);
  if (!sized) return sized.error();
  NearestFit nearest = nearest_fit(graph, asked, *sized, {}, {.split = false, .whole_batch = strong});
  const bool by_predict = nearest.settings.empty();
  if (by_predict) nearest = nearest_fit(graph, asked, cluster, {}, {.split = true, .whole_batch = strong});
  report.nearest = nearest_setting(nearest);
  if (by_predict && report.nearest) {
    // `sibyl predict` has to be told how many devices there are where nothing else says so.
    if (report.nearest->devices == point->devices)
      report.nearest->words = fmt::format("--devices {} {}", point->devices, report.nearest->words);
    nearest.settings.front().words = "`sibyl predict` with " + report.nearest->words;
  }
  const Prediction& p = *point->prediction;
  return Error{ErrorCode::infeasible,
               fmt::format("no number of devices fits: of {}, each needs {} of {}", point->devices,
                           to_string(p.memory.needed()), to_string(p.memory_capacity)),
               report.model, to_text(nearest)};
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
  ScaleReport report{model_name(arguments.operands().front()), cluster.name, scaling,
                     scale(graph, strategy, cluster, counts, scaling)};
  if (auto failure = common_failure(report)) return Failure(std::move(*failure));
  auto unfit = find_nearest(graph, strategy, cluster, report);
  switch (format) {
    case OutputFormat::json: SIBYL_CHECK(print(to_json(report))); break;
    case OutputFormat::csv: SIBYL_CHECK(print(csv(to_table(report)))); break;
    case OutputFormat::markdown: SIBYL_CHECK(print(markdown(to_table(report)))); break;
    case OutputFormat::text: SIBYL_CHECK(print(to_text(report, text_style(arguments)))); break;
  }
  if (unfit) return Failure(std::move(*unfit));
  return 0;
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
                    {{.name = "--devices",
                      .value = "LIST",
                      .help = "1,2,8 or 1..64 (or 1-64: doubling, and the end) or 4..16:4 (in steps, and the end)"},
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
