#include "oracle/cli/study.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "calibration/cluster_change.h"
#include "oracle/cli/options.h"

namespace sibyl::cli {

Option cluster_option() {
  return {
      .name = "--cluster", .value = "NAME|FILE", .help = "a shipped cluster, a cluster.yaml, or a calibration.json"};
}

Result<Cluster> read_cluster(const Arguments& arguments) {
  const auto name = arguments.text("--cluster");
  if (!name)
    return fail(ErrorCode::usage, "--cluster is missing", {},
                "`sibyl clusters` lists the shipped ones; `sibyl calibrate` measures yours");
  SIBYL_TRY(Cluster cluster, load_cluster(*name));
  if (const auto type = arguments.text("--device-type")) {
    auto other = with_devices(cluster, *type);
    if (!other) return fail(other.error().code, other.error().message, "--device-type", other.error().hint);
    cluster = std::move(*other);
  }
  constexpr int most_in_a_node = 1 << 16;
  SIBYL_TRY(const auto nodes, arguments.integer("--nodes", 1, 1'000'000));
  SIBYL_TRY(const auto each, arguments.integer("--devices-per-node", 1, most_in_a_node));
  if (!nodes && !each) return cluster;
  return resized(cluster, static_cast<int>(nodes.value_or(cluster.nodes)),
                 static_cast<int>(each.value_or(cluster.devices_per_node)));
}

Option nodes_option() {
  return {.name = "--nodes", .value = "N", .help = "so many nodes of the cluster's kind; as many as it has unless given"};
}

std::vector<Option> machine_options() {
  return {
      {.name = "--devices-per-node",
       .value = "N",
       .help = "so many devices in each node, on its links and NICs; as many as it has unless given"},
      {.name = "--device-type",
       .value = "NAME",
       .help = "other devices in its nodes, on its network: a shipped calibration, as h100-sxm (`sibyl doctor` lists "
               "them)"}};
}

Option data_option() {
  return {.name = "--data-from",
          .value = "PLACE",
          .help = "where samples come from: storage is read while the step before runs",
          .fallback = "memory",
          .choices = {"memory", "storage"}};
}

Option framework_option() {
  return {.name = "--framework",
          .value = "NAME",
          .help = "whose training is priced: Sibyl's own trainer, or PyTorch's DistributedDataParallel",
          .fallback = "sibyl",
          .choices = {"sibyl", "pytorch-ddp"}};
}

std::vector<Option> study_options() {
  return concatenated(
      {{cluster_option(), nodes_option()},
       machine_options(),
       {{.name = "--devices",
         .value = "N",
         .help = "how many devices; unless given, as many as --parallel says, or else all of the cluster"}},
       strategy_options(),
       {data_option(), framework_option()},
       model_options()});
}

Option change_option() {
  return {.name = "--set",
          .value = "KEY=VALUE",
          .help = "a part of the cluster that is different, by value or factor: nic.bandwidth=2x; `sibyl whatif --help` lists them",
          .repeatable = true};
}

std::vector<Option> prediction_options() { return concatenated({study_options(), {change_option()}}); }

Result<Cluster> with_changes(const Arguments& arguments, Cluster cluster, const Strategy& strategy) {
  const std::vector<std::string> changes = arguments.all("--set");
  if (changes.empty()) return cluster;
  return changed(cluster, changes, compute_type(strategy.precision));
}

void read_data_source(const Arguments& arguments, Strategy& strategy) {
  strategy.data_source = arguments.text("--data-from") == "storage" ? DataSource::storage : DataSource::memory;
}

Result<void> read_framework(const Arguments& arguments, Strategy& strategy) {
  const auto name = arguments.text("--framework");
  return name ? parse_framework(*name).map([&](Framework framework) { strategy.framework = framework; }) : Result<void>{};
}

Result<Strategy> read_strategy_for(const Arguments& arguments, const Cluster& cluster) {
  std::optional<int> devices;
  if (const auto text = arguments.text("--devices")) {
    SIBYL_TRY(const std::vector<int> counts, parse_device_counts(*text));
    if (counts.size() != 1)
      return fail(ErrorCode::usage, "--devices takes one count here", {}, "`sibyl scale` takes several");
    devices = counts.front();
  } else if (!arguments.text("--parallel")) {
    devices = cluster.devices();
  }
  SIBYL_TRY(Strategy strategy, read_strategy(arguments, devices));
  read_data_source(arguments, strategy);
  SIBYL_CHECK(read_framework(arguments, strategy));
  return strategy;
}

Failure does_not_fit(const Prediction& prediction, const std::string& model, const NearestFit& nearest) {
  return fail(ErrorCode::infeasible,
              fmt::format("does not fit: {} of {} on each device", to_string(prediction.memory.needed()),
                          to_string(prediction.memory_capacity)),
              model, to_text(nearest));
}

std::optional<NearestSetting> nearest_setting(const NearestFit& fit) {
  if (fit.settings.empty()) return std::nullopt;
  const FittingSetting& first = fit.settings.front();
  return NearestSetting{first.words, first.strategy.devices(), first.strategy.global_batch, first.memory};
}

std::int64_t micro_batch_of(const Strategy& strategy) {
  return std::max<std::int64_t>(1, strategy.global_batch / strategy.data / strategy.accumulation);
}

Result<Graph> load_graph_for(const Arguments& arguments, std::int64_t micro_batch, const Cancelled& cancelled) {
  SIBYL_TRY(ImportOptions options, read_import_options(arguments));
  options.batch = micro_batch;
  options.cancelled = cancelled;
  return load_graph(arguments.operands().front(), options);
}

}  // namespace sibyl::cli
