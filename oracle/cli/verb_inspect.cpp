#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/verbs.h"
#include "oracle/report/inspection.h"

namespace sibyl::cli {
namespace {

Result<int> run_inspect(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  SIBYL_TRY(ImportOptions options, read_import_options(arguments));
  SIBYL_TRY(options.batch, arguments.integer("--batch", 1));
  SIBYL_TRY(const Precision precision, parse_precision(arguments.text("--precision").value_or("fp32")));
  const std::string& model = arguments.operands().front();
  SIBYL_TRY(const Import import, load_import(model, options));
  const Backend backend = arguments.text("--device") == "cpu" ? Backend::cpu : Backend::cuda;
  const Inspection inspection = inspect(import, model_name(model), compute_type(precision), backend);
  switch (format) {
    case OutputFormat::json: SIBYL_CHECK(print(to_json(inspection))); break;
    case OutputFormat::csv: SIBYL_CHECK(print(csv(to_table(inspection)))); break;
    case OutputFormat::markdown: SIBYL_CHECK(print(markdown(to_table(inspection)))); break;
    case OutputFormat::text: SIBYL_CHECK(print(to_text(inspection, text_style(arguments)))); break;
  }
  return 0;
}

}  // namespace

Verb inspect_verb() {
  Command c;
  c.name = "inspect";
  c.program = "sibyl inspect";
  c.summary = "say what a model computes, keeps, and what of it cannot be priced";
  c.operands = "MODEL";
  c.least_operands = c.most_operands = 1;
  c.examples = {{"sibyl inspect model.onnx", "parameters, FLOPs, activations, the layers that matter"},
                {"sibyl inspect zoo:gpt2 --batch 8 --dim seq=512", "a model of the zoo, for 8 sequences of 512 tokens"},
                {"sibyl inspect - --json < model.onnx", "from standard input, as JSON"}};
  c.options =
      concatenated({{{.name = "--batch", .value = "N", .help = "samples; the model's own batch, or 1, unless given"},
                     {.name = "--precision",
                      .value = "TYPE",
                      .help = "what activations are kept in",
                      .fallback = "fp32",
                      .choices = {"fp32", "tf32", "fp16", "bf16"}},
                     {.name = "--device",
                      .value = "KIND",
                      .help = "frameworks keep different things on each",
                      .fallback = "cuda",
                      .choices = {"cpu", "cuda"}}},
                    model_options(),
                    table_options(),
                    output_options()});
  c.notes = "MODEL is a path to an ONNX file, - for standard input, or zoo:NAME (`sibyl zoo` lists them).";
  return {std::move(c), run_inspect};
}

}  // namespace sibyl::cli
