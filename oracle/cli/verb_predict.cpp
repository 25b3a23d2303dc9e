#include <fmt/format.h>

#include "base/quantity.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/cli/verbs.h"
#include "oracle/nearest_fit.h"

namespace sibyl::cli {
namespace {

Result<int> run_predict(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  SIBYL_TRY(Cluster cluster, read_cluster(arguments));
  SIBYL_TRY(const Strategy strategy, read_strategy_for(arguments, cluster));
  SIBYL_TRY(cluster, with_changes(arguments, std::move(cluster), strategy));
  SIBYL_TRY(const Graph graph, load_graph_for(arguments, micro_batch_of(strategy)));
  SIBYL_TRY(Prediction prediction, predict(graph, strategy, cluster));
  PredictionReport report{model_name(arguments.operands().front()), cluster.name, std::move(prediction),
                          given_words(arguments, concatenated({strategy_options(), model_options()}))};
  NearestFit nearest;
  if (!report.prediction.fits) {
    nearest = nearest_fit(graph, strategy, cluster);
    report.nearest = nearest_setting(nearest);
  }
  switch (format) {
    case OutputFormat::json: SIBYL_CHECK(print(to_json(report))); break;
    case OutputFormat::csv: SIBYL_CHECK(print(csv(to_table(report)))); break;
    case OutputFormat::markdown: SIBYL_CHECK(print(markdown(to_table(report)))); break;
    case OutputFormat::text: SIBYL_CHECK(print(to_text(report, text_style(arguments)))); break;
  }
  if (report.prediction.fits) return 0;
  return does_not_fit(report.prediction, report.model, nearest);
}

}  // namespace

Verb predict_verb() {
  Command c;
  c.name = "predict";
  c.program = "sibyl predict";
  c.summary = "say how fast a model trains on a cluster, whether it fits, and what holds it back";
  c.operands = "MODEL";
  c.least_operands = c.most_operands = 1;
  c.examples = {
      {"sibyl predict resnet50.onnx --cluster dgx-a100 --devices 8 --batch 64/device", "one node of eight GPUs"},
      {"sibyl predict zoo:gpt2 --cluster abci-v100 --parallel data=64 --batch 512 --dim seq=1024 --precision fp16",
       "64 replicas share a batch of 512 sequences"},
      {"sibyl predict model.onnx --cluster my-cluster.yaml --devices 16 --json > prediction.json",
       "for programs, and for `sibyl compare`"}};
  c.options = concatenated({prediction_options(), table_options(), output_options()});
  c.notes =
      "MODEL is a path to an ONNX file, - for standard input, or zoo:NAME. Exit code 4: it does not fit, or cannot be "
      "split so.\n"
      "Every figure is defined in docs/commands.md; JSON keys in docs/formats/prediction.md.";
  return {std::move(c), run_predict};
}

}  // namespace sibyl::cli
