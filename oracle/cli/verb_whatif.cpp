#include <fmt/format.h>

#include <algorithm>

#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/cli/verbs.h"

namespace sibyl::cli {
namespace {

std::vector<Option> study_options() {
  return concatenated(
      {{cluster_option(),
        {.name = "--devices", .value = "N", .help = "how many devices; all of the cluster unless given"}},
       strategy_options(),
       model_options()});
}

Result<PredictionReport> priced(const Arguments& arguments) {
  SIBYL_TRY(const Cluster cluster, read_cluster(arguments));
  SIBYL_TRY(const Strategy strategy, read_strategy_for(arguments, cluster));
  SIBYL_TRY(const Graph graph, load_graph_for(arguments, micro_batch_of(strategy)));
  SIBYL_TRY(Prediction prediction, predict(graph, strategy, cluster));
  return PredictionReport{model_name(arguments.operands().front()), cluster.name, std::move(prediction)};
}

// The words of the baseline with --set NAME=VALUE put in place of --NAME. `model=` replaces the operand.
Result<Arguments> scenario(const Arguments& arguments) {
  Command command;
  command.program = "sibyl whatif --set";
  command.options = study_options();
  command.least_operands = command.most_operands = 1;
  std::string model = arguments.operands().front();
  std::vector<std::string> names, words;
  for (const Option& option : command.options) names.push_back(option.name.substr(2));
  std::vector<std::string> replaced;
  for (const std::string& setting : arguments.all("--set")) {
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    const bool known = name == "model" || std::ranges::find(names, name) != names.end();
    if (!known) {
      const auto meant = nearest(name, names);
      return fail(ErrorCode::usage, fmt::format("--set: there is nothing called '{}' to change", name), {},
                  meant ? fmt::format("did you mean {}?", *meant)
                        : fmt::format("choose from model, {}", fmt::join(names, ", ")));
    }
    replaced.push_back("--" + name);
    if (name == "model")
      model = equals == std::string::npos ? "" : setting.substr(equals + 1);
    else
      words.push_back("--" + setting);
  }
  words.push_back("--");
  words.push_back(model);
  for (const Option& option : command.options) {
    if (!arguments.has(option.name)) continue;
    // Of --devices and --parallel, changing one sets the other aside.
    const bool other_count = (option.name == "--parallel" && std::ranges::count(replaced, "--devices") > 0) ||
                             (option.name == "--devices" && std::ranges::count(replaced, "--parallel") > 0);
    if (other_count || (!option.repeatable && std::ranges::count(replaced, option.name) > 0)) continue;
    for (const std::string& value : arguments.all(option.name)) {
      const bool again = option.name == "--dim" && std::ranges::any_of(words, [&](const std::string& word) {
                           return word.starts_with("--dim=" + value.substr(0, value.find('=')) + "=");
                         });
      if (!again) words.insert(words.begin(), option.value.empty() ? option.name : option.name + "=" + value);
    }
  }
  return Arguments::parse(std::move(command), words);
}

Result<int> run(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  if (!arguments.has("--set"))
    return fail(ErrorCode::usage, "--set is missing: what should be different?", {},
                "write --set devices=128 or --set cluster=dgx-h100");
  SIBYL_TRY(const Arguments changed, scenario(arguments));
  SIBYL_TRY(const PredictionReport before, priced(arguments));
  SIBYL_TRY(const PredictionReport after, priced(changed));
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
                 "two changes at once"}};
  std::vector<Option> options = study_options();
  c.options =
      concatenated({std::move(options),
                    {{.name = "--set",
                      .value = "NAME=VALUE",
                      .help = "an option of the second prediction: devices=, batch=, cluster=, precision=, model= …",
                      .repeatable = true}},
                    table_options(),
                    output_options()});
  return {std::move(c), run};
}

}  // namespace sibyl::cli
