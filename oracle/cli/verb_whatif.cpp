#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "base/progress.h"
#include "calibration/cluster_change.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/cli/verbs.h"
#include "oracle/report/sensitivity_report.h"
#include "oracle/validate/process.h"

namespace sibyl::cli {
namespace {

// Of the second prediction: a part of the cluster is changed, and devices beyond its size are more nodes of the same
// kind, as in `sibyl scale`.
Result<Cluster> changed_cluster(Cluster cluster, const Strategy& strategy, const std::vector<std::string>& changes) {
  const int per_node = cluster.devices_per_node, nodes = (strategy.devices() + per_node - 1) / per_node;
  if (nodes > cluster.nodes) {
    SIBYL_TRY(cluster, resized(cluster, nodes, per_node));
    cluster.name += fmt::format(" of {} nodes", nodes);
  }
  return changed(cluster, changes, compute_type(strategy.precision));
}

struct Asked {
  Cluster cluster;
  Strategy strategy;
  Graph graph;
};

Result<Asked> read(const Arguments& arguments, const std::optional<std::vector<std::string>>& changes) {
  SIBYL_TRY(Cluster cluster, read_cluster(arguments));
  SIBYL_TRY(Strategy strategy, read_strategy_for(arguments, cluster));
  if (changes) {
    SIBYL_TRY(cluster, changed_cluster(std::move(cluster), strategy, *changes));
  }
  SIBYL_TRY(Graph graph, load_graph_for(arguments, micro_batch_of(strategy)));
  return Asked{std::move(cluster), std::move(strategy), std::move(graph)};
}

Result<PredictionReport> priced(const Arguments& arguments, const std::optional<std::vector<std::string>>& changes) {
  SIBYL_TRY(const Asked asked, read(arguments, changes));
  SIBYL_TRY(Prediction prediction, predict(asked.graph, asked.strategy, asked.cluster));
  return PredictionReport{model_name(arguments.operands().front()), asked.cluster.name, std::move(prediction)};
}

// What --set can name: options of the prediction without their dashes, `model`, and keys of the cluster.
std::string name_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }

Failure unknown(const std::string& name, const std::vector<std::string>& options) {
  std::vector<std::string> keys;
  for (const ClusterKey& key : cluster_keys()) keys.emplace_back(key.name);
  std::vector<std::string> all = options;
  all.insert(all.end(), keys.begin(), keys.end());
  const auto meant = nearest(name, all);
  return fail(ErrorCode::usage, fmt::format("--set: there is nothing called '{}' to change", name), {},
              fmt::format("{}known are, of the cluster, {}; of the rest, {}",
                          meant ? fmt::format("did you mean {}? ", *meant) : "", fmt::join(keys, ", "),
                          fmt::join(options, ", ")));
}

std::vector<std::string> cluster_changes(const Arguments& arguments) {
  std::vector<std::string> changes = arguments.all("--set");
  std::erase_if(changes, [](const std::string& setting) { return !is_cluster_key(name_of(setting)); });
  return changes;
}

std::string without_data(const std::string& parallel) {
  std::string rest;
  std::istringstream all(parallel);
  for (std::string axis; std::getline(all, axis, ',');)
    if (!axis.starts_with("data=")) rest += (rest.empty() ? "" : ",") + axis;
  return rest;
}

// What of an option stays where --set says another: as `sibyl predict` would read both together. Other devices leave
// how each replica is split, another split leaves the devices that it is to be on.
std::vector<std::string> kept(const Arguments& arguments, const std::string& option,
                              const std::map<std::string, std::string>& set) {
  const auto said = [&](const char* name) { return set.find(name) != set.end(); };
  std::vector<std::string> values = arguments.all(option);
  if (option == "--parallel" && said("devices")) {
    for (std::string& value : values) value = without_data(value);
    std::erase(values, "");
  }
  if (option == "--devices" && said("parallel") && set.at("parallel") != without_data(set.at("parallel"))) return {};
  return values;
}

// The words of the baseline with --set NAME=VALUE put in place of --NAME. `model=` replaces the operand.
Result<Arguments> scenario(const Arguments& arguments) {
  Command command;
  command.program = "sibyl whatif --set";
  command.options = study_options();
  command.least_operands = command.most_operands = 1;
  std::string model = arguments.operands().front();
  std::vector<std::string> names = {"model"}, words;
  for (const Option& option : command.options) names.push_back(option.name.substr(2));
  std::map<std::string, std::string> set;
  for (const std::string& setting : arguments.all("--set")) {
    const std::size_t equals = setting.find('=');
    const std::string name = name_of(setting);
    if (is_cluster_key(name)) continue;
    if (std::ranges::find(names, name) == names.end()) return unknown(name, names);
    set[name] = equals == std::string::npos ? "" : setting.substr(equals + 1);
    if (name == "model")
      model = set[name];
    else
      words.push_back("--" + setting);
  }
  words.push_back("--");
  words.push_back(model);
  for (const Option& option : command.options) {
    if (!arguments.has(option.name)) continue;
    if (!option.repeatable && set.contains(option.name.substr(2))) continue;
    for (const std::string& value : kept(arguments, option.name, set)) {
      const bool again = option.name == "--dim" && std::ranges::any_of(words, [&](const std::string& word) {
                           return word.starts_with("--dim=" + value.substr(0, value.find('=')) + "=");
                         });
      if (!again) words.insert(words.begin(), option.value.empty() ? option.name : option.name + "=" + value);
    }
  }
  return Arguments::parse(std::move(command), words);
}

// Of what --set says, where it says anything.
Result<int> run_sensitivity(const Arguments& arguments, OutputFormat format) {
  const std::vector<std::string> changes = cluster_changes(arguments);
  SIBYL_TRY(const Arguments second, scenario(arguments));
  SIBYL_TRY(const Asked asked, read(second, changes.empty() ? std::nullopt : std::optional(changes)));
  outlive_interruption();
  SensitivityReport report{model_name(second.operands().front()), asked.cluster.name, {}};
  {
    std::optional<Progress> progress;
    SensitivityOptions options;
    options.cancelled = was_interrupted;
    options.progress = [&](std::size_t done, std::size_t total) {
      if (!progress) progress.emplace("varying", total);
      progress->report(done);
    };
    SIBYL_TRY(report.result, sensitivities(asked.graph, asked.strategy, asked.cluster, options));
  }
  switch (format) {
    case OutputFormat::json: SIBYL_CHECK(print(to_json(report))); break;
    case OutputFormat::csv: SIBYL_CHECK(print(csv(to_table(report)))); break;
    case OutputFormat::markdown: SIBYL_CHECK(print(markdown(to_table(report)))); break;
    case OutputFormat::text: SIBYL_CHECK(print(to_text(report, text_style(arguments)))); break;
  }
  return 0;
}

Result<int> run_whatif(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  if (arguments.has("--sensitivity")) return run_sensitivity(arguments, format);
  if (!arguments.has("--set"))
    return fail(ErrorCode::usage, "--set is missing: what should be different?", {},
                "write --set devices=128, --set cluster=dgx-h100 or --set nic.bandwidth=2x; or --sensitivity for what "
                "each input is worth");
  SIBYL_TRY(const Arguments second, scenario(arguments));
  SIBYL_TRY(const PredictionReport before, priced(arguments, std::nullopt));
  SIBYL_TRY(const PredictionReport after, priced(second, cluster_changes(arguments)));
  switch (format) {
    case OutputFormat::json: SIBYL_CHECK(print(comparison_json(before, after))); break;
    case OutputFormat::csv: SIBYL_CHECK(print(csv(comparison_table(before, after)))); break;
    case OutputFormat::markdown: SIBYL_CHECK(print(markdown(comparison_table(before, after)))); break;
    case OutputFormat::text: SIBYL_CHECK(print(comparison_text(before, after, text_style(arguments)))); break;
  }
  return after.prediction.fits ? 0 : exit_code(ErrorCode::infeasible);
}

}  // namespace

Verb whatif_verb() {
  Command c;
  c.name = "whatif";
  c.program = "sibyl whatif";
  c.summary = "change the cluster, the strategy or the model and show the difference";
  c.operands = "MODEL";
  c.least_operands = c.most_operands = 1;
  c.examples = {{"sibyl whatif zoo:resnet50 --cluster abci-v100 --devices 64 --batch 64/device --set cluster=dgx-a100",
                 "the same job on another machine"},
                {"sibyl whatif m.onnx --cluster dgx-a100 --devices 8 --set precision=bf16 --set batch=128/device",
                 "two changes at once"},
                {"sibyl whatif zoo:bert-large --cluster ethernet-100g --devices 64 --set nic.bandwidth=4x --set "
                 "device.memory=80GB",
                 "the same machine with faster NICs and larger GPUs"},
                {"sibyl whatif zoo:gpt2-xl --cluster dgx-a100 --devices 16 --batch 8/device --sensitivity",
                 "what each part of the machine is worth, twice and half as good"}};
  c.options = concatenated(
      {study_options(),
       {{.name = "--set",
         .value = "NAME=VALUE",
         .help = "what is different in the second prediction: a part of the cluster, or any option here",
         .repeatable = true},
        {.name = "--sensitivity", .help = "instead of one change, each input alone twice and half as good, by effect"}},
       table_options(),
       output_options()});
  c.notes =
      "--set takes every option above without its dashes (devices=128, precision=bf16), model=, and these parts of "
      "the cluster,\nas a value or as a factor (2x, 0.5x):\n";
  for (const ClusterKey& key : cluster_keys())
    c.notes += fmt::format("  {:<26}{}: {}, as {}\n", key.name, key.title, key.says, key.takes);
  c.notes +=
      "What was measured is carried to the changed part by the models' formulas (docs/commands.md), and no longer "
      "called "
      "measured.";
  return {std::move(c), run_whatif};
}

}  // namespace sibyl::cli
