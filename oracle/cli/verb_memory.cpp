// memory: what a device holds where a step holds most, tensor by tensor, and how much it holds when.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/cli/verbs.h"
#include "oracle/memory/history.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t rows_of_text = 20;

std::string heading(const StepMemory& memory, const Cluster& cluster, const std::string& model,
                    const std::string& parallel) {
  const MemoryHistory& history = memory.history;
  const MemoryBreakdown& peak = history.footprint.peak;
  const Bytes has = cluster.kernels.device().memory;
  std::string text = fmt::format("{} on {}, {}", model, cluster.name, parallel);
  if (memory.devices.size() > 1)
    text += fmt::format(": device {} of the pipeline's {}", memory.coordinate, memory.devices.size());
  text += fmt::format("\n\nmost is alive in  {}\n", history.where(history.peak));
  text += fmt::format("alive then        {} of {}\n", to_string(peak.total), to_string(has));
  if (peak.cached().value() > 0)
    text += fmt::format("process holds     {} at most, with what its allocator keeps\n", to_string(peak.needed()));
  if (memory.devices.size() > 1) {
    text += "each device       ";
    for (std::size_t device = 0; device < memory.devices.size(); ++device)
      text += fmt::format("{}{}: {}", device == 0 ? "" : ", ", device, to_string(memory.devices[device].peak.needed()));
    text += '\n';
  }
  return text + '\n';
}

// The first rows, and what the others come to.
std::string shortened(Table table, const MemoryHistory& history) {
  if (table.rows.size() <= rows_of_text) return aligned_text(table);
  const std::size_t left_out = table.rows.size() - rows_of_text;
  Bytes rest;
  for (std::size_t row = rows_of_text; row < table.rows.size(); ++row)
    rest += Bytes{std::stod(table.rows[row][table.columns.size() - 2].value)};
  table.rows.resize(rows_of_text);
  return aligned_text(table) + fmt::format("and {} rows more: {}, {}; --all shows every tensor by itself\n", left_out,
                                           to_string(rest), percent(rest / history.footprint.peak.total));
}

Json to_json(const StepMemory& memory, const Cluster& cluster, const std::string& model, const std::string& parallel) {
  const MemoryHistory& history = memory.history;
  const MemoryBreakdown& peak = history.footprint.peak;
  Json json{{"schema", "sibyl.memory/1"},
            {"model", model},
            {"cluster", cluster.name},
            {"parallel", parallel},
            {"device", memory.coordinate},
            {"memory_bytes", cluster.kernels.device().memory.value()},
            {"peak",
             {{"where", history.where(history.peak)},
              {"start_s", history.moments[history.peak].start.value()},
              {"alive_bytes", peak.total.value()},
              {"needed_bytes", peak.needed().value()}}}};
  for (const Footprint& device : memory.devices)
    json["devices"].push_back(
        {{"alive_bytes", device.peak.total.value()}, {"needed_bytes", device.peak.needed().value()}});
  for (const AliveMemory& alive : history.alive)
    json["alive"].push_back({{"name", alive.name},
                             {"kind", to_string(alive.kind)},
                             {"operation", alive.operation},
                             {"count", alive.count},
                             {"bytes", alive.bytes.value()}});
  for (std::size_t i = 0; i < history.moments.size(); ++i)
    json["moments"].push_back({{"start_s", history.moments[i].start.value()},
                               {"where", history.where(i)},
                               {"alive_bytes", history.moments[i].most.total.value()},
                               {"needed_bytes", history.moments[i].most.needed().value()}});
  json["end_s"] = history.end.value();
  return json;
}

Result<int> run_memory(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  SIBYL_TRY(const Cluster cluster, read_cluster(arguments));
  SIBYL_TRY(const Strategy strategy, read_strategy_for(arguments, cluster));
  SIBYL_TRY(const auto asked, arguments.integer("--stage", 0, strategy.pipeline - 1));
  SIBYL_TRY(const Graph graph, load_graph_for(arguments, micro_batch_of(strategy)));
  std::optional<std::size_t> coordinate;
  if (asked) coordinate = static_cast<std::size_t>(*asked);
  SIBYL_TRY(const StepMemory memory, step_memory(graph, strategy, cluster, coordinate));
  const std::string model = model_name(arguments.operands().front()), parallel = parallel_text(strategy);
  const MemoryHistory& history = memory.history;
  const Table table = arguments.has("--all") ? alive_table(history) : alike_table(history);
  switch (format) {
    case OutputFormat::json: SIBYL_CHECK(print(to_json(memory, cluster, model, parallel).dump(2) + "\n")); break;
    case OutputFormat::csv: SIBYL_CHECK(print(csv(table))); break;
    case OutputFormat::markdown: SIBYL_CHECK(print(markdown(table))); break;
    case OutputFormat::text:
      SIBYL_CHECK(print(heading(memory, cluster, model, parallel) +
                        (arguments.has("--all") ? aligned_text(table) : shortened(table, history))));
      break;
  }
  return 0;
}

}  // namespace

Verb memory_verb() {
  Command c;
  c.name = "memory";
  c.program = "sibyl memory";
  c.summary = "show what fills a device's memory where a step needs most, tensor by tensor";
  c.operands = "MODEL";
  c.least_operands = c.most_operands = 1;
  c.examples = {
      {"sibyl memory zoo:llama3-8b --cluster dgx-a100 --devices 8 --parallel data=8 --zero 3 --batch 8 --precision "
       "bf16",
       "tensors of all layers together, the largest first"},
      {"sibyl memory model.onnx --cluster c.yaml --parallel pipeline=4 --batch 32 --micro-batches 8 --stage 0 --all",
       "every tensor on the first of a pipeline's devices"}};
  c.options = concatenated(
      {study_options(),
       {{.name = "--stage", .value = "N", .help = "the pipeline's device N, from 0; the fullest unless given"},
        {.name = "--all", .help = "every tensor by itself, with the operation that it belongs to"}},
       table_options(),
       output_options()});
  c.notes = "It shows plans that do not fit, too. JSON also says how much is alive when.";
  return {std::move(c), run_memory};
}

}  // namespace sibyl::cli
