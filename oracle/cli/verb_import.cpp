// import: a cluster file from what other programs know of a machine: NCCL's and hwloc's topologies of a node, Slurm's
// of the switches, ASTRA-sim's networks.
#include <filesystem>

#include "calibration/cluster_file.h"
#include "calibration/import/cluster_text.h"
#include "calibration/shipped.h"
#include "netmodel/fabric/fabric.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/verbs.h"

namespace sibyl::cli {
namespace {

Result<ClusterFile> cluster_named(const std::string& name) {
  if (const auto text = shipped::find(shipped::Kind::cluster, name)) return parse_cluster_file(*text, name);
  SIBYL_TRY(const std::string text, read_text(name));
  return parse_cluster_file(text, name);
}

Result<int> run_import(const Arguments& arguments) {
  import::Wanted wanted;
  wanted.name = arguments.text("--name").value_or("imported");
  wanted.calibration = arguments.text("--calibration").value_or("");
  SIBYL_TRY(const auto nodes, arguments.integer("--nodes", 1, most_devices));
  if (nodes) wanted.nodes = static_cast<int>(*nodes);
  if (const auto like = arguments.text("--like")) {
    SIBYL_TRY(wanted.like, cluster_named(*like));
  }
  std::vector<import::Source> sources;
  for (const std::string& file : arguments.operands()) {
    const std::string shown = file == "-" ? "standard input" : file;
    SIBYL_TRY(const std::string text, read_text(file));
    SIBYL_TRY(import::Part part, import::read_part(text, shown));
    sources.push_back({shown, std::move(part)});
  }
  SIBYL_TRY(const std::string text, import::cluster_text(sources, wanted));
  const std::string output = arguments.text("--output").value_or("-");
  SIBYL_TRY(const ClusterFile cluster, parse_cluster_file(text, output));
  if (cluster.shape)
    if (const auto made = fabric::Fabric::make(cluster.topology, *cluster.shape); !made)
      return fail(made.error().message, cluster.shape_where, made.error().hint);
  SIBYL_CHECK(write_file(output, text, arguments.has("--force")));
  return 0;
}

}  // namespace

Verb import_verb() {
  Command c;
  c.name = "import";
  c.program = "sibyl import";
  c.summary = "make a cluster file of topologies that NCCL, hwloc, Slurm or ASTRA-sim wrote";
  c.operands = "FILE...";
  c.least_operands = 1;
  c.most_operands = 16;
  c.examples = {
      {"sibyl import topology.conf --like dgx-h100 -o ours.yaml", "Slurm's switches over nodes of a shipped kind"},
      {"sibyl import nccl.xml topology.yaml --calibration a100-sxm-80gb -o ours.yaml",
       "a node as NCCL sees it (NCCL_TOPO_DUMP_FILE=nccl.xml), below Slurm's switches"}};
  c.options = {
      {.name = "--calibration",
       .value = "NAME",
       .help = "the devices: a shipped calibration, or a .json beside the output"},
      {.name = "--like", .value = "CLUSTER", .help = "whose node, devices and settings are taken where no file describes them"},
      {.name = "--nodes", .value = "N", .help = "how many, where no file says it"},
      {.name = "--name", .value = "TEXT", .help = "of the cluster", .fallback = "imported"},
      {.name = "--output", .value = "FILE", .help = "where to; standard output unless given", .letter = 'o'},
      {.name = "--force", .help = "replace FILE if it exists"}};
  c.notes =
      "What the files do not say is taken for granted and stands in comments at the head of the cluster file; see "
      "docs/formats/cluster.md.";
  return {std::move(c), run_import};
}

}  // namespace sibyl::cli
