// zoo and clusters: what is shipped with Sibyl.
#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "calibration/cluster.h"
#include "models/zoo/zoo.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/verbs.h"
#include "oracle/report/format.h"
#include "oracle/report/table_json.h"

namespace sibyl::cli {
namespace {

Result<void> list_zoo(OutputFormat format) {
  using enum Column::Align;
  Table table{.columns = {{"name", "name", left}, {"parameters", "parameters"}, {"description", "description", left}},
              .rows = {}};
  for (const ZooModel& model : zoo_models()) {
    table.rows.push_back(
        {model.name, Cell(grouped(model.parameters), fmt::format("{}", model.parameters)), model.description});
  }
  return print_table(table, table_json(table, "sibyl-zoo", "models"), format);
}

Result<void> write_zoo(const Arguments& arguments, const std::string& name) {
  std::vector<std::string> known;
  for (const ZooModel& model : zoo_models()) known.push_back(model.name);
  if (std::ranges::find(known, name) == known.end()) {
    const auto meant = nearest(name, known);
    return fail(fmt::format("there is no model '{}' in the zoo", name), {},
                meant ? fmt::format("did you mean {}?", *meant) : "`sibyl zoo` lists them");
  }
  const std::string path = arguments.text("--output").value_or(name + ".onnx");
  SIBYL_TRY(const std::string bytes, zoo_model_bytes(name));
  SIBYL_CHECK(write_file(path, bytes, arguments.has("--force")));
  if (path != "-") say(fmt::format("wrote {}", path));
  return {};
}

Result<int> run_zoo(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  if (arguments.operands().empty()) {
    if (arguments.has("--output"))
      return fail(ErrorCode::usage, "--output needs the name of a model", {}, "sibyl zoo resnet50 -o resnet50.onnx");
    SIBYL_CHECK(list_zoo(format));
  } else {
    SIBYL_CHECK(write_zoo(arguments, arguments.operands().front()));
  }
  return 0;
}

Result<int> run_clusters(const Arguments& arguments) {
  using enum Column::Align;
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  Table table{.columns = {{"name", "name", left},
                          {"device", "device", left},
                          {"nodes", "nodes"},
                          {"per node", "devices_per_node"},
                          {"memory", "memory_bytes"},
                          {"samples", "kernel_samples"}},
              .rows = {}};
  for (const std::string& name : shipped_clusters()) {
    SIBYL_TRY(const Cluster cluster, load_cluster(name));
    const Device& device = cluster.kernels.device();
    table.rows.push_back({name, device.name, fmt::format("{}", cluster.nodes),
                          fmt::format("{}", cluster.devices_per_node),
                          Cell(to_string(device.memory), plain_number(device.memory.value())),
                          fmt::format("{}", cluster.kernels.size())});
  }
  SIBYL_CHECK(print_table(table, table_json(table, "sibyl-clusters", "clusters"), format));
  return 0;
}

}  // namespace

Verb zoo_verb() {
  Command c;
  c.name = "zoo";
  c.program = "sibyl zoo";
  c.summary = "list the known models, or write one as an ONNX file";
  c.operands = "[NAME]";
  c.most_operands = 1;
  c.examples = {{"sibyl zoo", "what there is"},
                {"sibyl zoo resnet50 -o resnet50.onnx", "writes it; weights exist by shape only"},
                {"sibyl predict zoo:resnet50 --cluster dgx-a100", "used without writing it"}};
  c.options =
      concatenated({{{.name = "--output", .value = "FILE", .help = "where to; NAME.onnx unless given", .letter = 'o'},
                     {.name = "--force", .help = "replace FILE if it exists"}},
                    table_options(),
                    output_options()});
  return {std::move(c), run_zoo};
}

Verb clusters_verb() {
  Command c;
  c.name = "clusters";
  c.program = "sibyl clusters";
  c.summary = "list the clusters that are shipped";
  c.examples = {{"sibyl clusters", "names for --cluster, with the number of kernel measurements behind each"}};
  c.options = concatenated({table_options(), output_options()});
  return {std::move(c), run_clusters};
}

}  // namespace sibyl::cli
