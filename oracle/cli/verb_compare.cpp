// compare and export: what is done with predictions that are kept in files.
#include <fmt/format.h>

#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/verbs.h"

namespace sibyl::cli {
namespace {

Result<PredictionReport> load_prediction(const std::string& path) {
  SIBYL_TRY(const std::string text, read_text(path));
  return parse_prediction(text, path == "-" ? "standard input" : path);
}

Result<int> run_compare(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  if (arguments.operands()[0] == "-" && arguments.operands()[1] == "-")
    return fail(ErrorCode::usage, "only one of the two can be standard input");
  SIBYL_TRY(const PredictionReport first, load_prediction(arguments.operands()[0]));
  SIBYL_TRY(const PredictionReport second, load_prediction(arguments.operands()[1]));
  switch (format) {
    case OutputFormat::json: SIBYL_CHECK(print(comparison_json(first, second))); break;
    case OutputFormat::csv: SIBYL_CHECK(print(csv(comparison_table(first, second)))); break;
    case OutputFormat::markdown: SIBYL_CHECK(print(markdown(comparison_table(first, second)))); break;
    case OutputFormat::text: SIBYL_CHECK(print(comparison_text(first, second, text_style(arguments)))); break;
  }
  return 0;
}

template <class Report>
Result<std::string> spelt(const Report& report, const std::string& format) {
  if (format == "csv") return csv(to_table(report));
  if (format == "markdown") return markdown(to_table(report));
  if (format == "html") return to_html(report);
  if (format == "text") return to_text(report, {});
  return to_json(report);
}

Result<std::string> script(const PredictionReport& report, const Arguments& arguments) {
  SIBYL_TRY(const auto steps, arguments.integer("--steps", 1));
  if (report.prediction.precision != "fp32")
    say(fmt::format("the plan computes in {}; `sibyl train` says at once if it cannot", report.prediction.precision));
  return to_sbatch(report, *steps);
}

Result<int> run_export(const Arguments& arguments) {
  const std::string& path = arguments.operands().front();
  const std::string file = path == "-" ? "standard input" : path;
  if (arguments.has("--json") && arguments.has("--format"))
    return fail(ErrorCode::usage, "--json is a format: leave out one of them", "--format");
  const std::string format = arguments.has("--json") ? "json" : arguments.text("--format").value_or("html");
  SIBYL_TRY(const std::string text, read_text(path));
  SIBYL_TRY(const ReportKind kind, report_kind(text, file));
  std::string result;
  if (kind == ReportKind::prediction) {
    SIBYL_TRY(const PredictionReport report, parse_prediction(text, file));
    SIBYL_TRY(result, format == "sbatch" ? script(report, arguments) : spelt(report, format));
  } else if (format == "sbatch") {
    return fail("is a scaling study; a job runs one plan", file, "export what `sibyl predict --json` wrote");
  } else {
    SIBYL_TRY(const ScaleReport report, parse_scale(text, file));
    SIBYL_TRY(result, spelt(report, format));
  }
  SIBYL_CHECK(write_file(arguments.text("--output").value_or("-"), result, arguments.has("--force")));
  return 0;
}

}  // namespace

Verb compare_verb() {
  Command c;
  c.name = "compare";
  c.program = "sibyl compare";
  c.summary = "show the difference between two predictions";
  c.operands = "FIRST.json SECOND.json";
  c.least_operands = c.most_operands = 2;
  c.examples = {
      {"sibyl predict m.onnx --cluster dgx-a100 --json > a.json; sibyl predict m.onnx --cluster dgx-h100 --json > "
       "b.json; sibyl compare a.json b.json",
       "what the newer machine gains, and whether the difference is larger than the uncertainty"}};
  c.options = concatenated({table_options(), output_options()});
  c.notes = "The files are those that `sibyl predict --json` writes; one may be - for standard input.";
  return {std::move(c), run_compare};
}

Verb export_verb() {
  Command c;
  c.name = "export";
  c.program = "sibyl export";
  c.summary = "turn a prediction or a scaling study into a page, a table, JSON or a job for Slurm";
  c.operands = "FILE.json";
  c.least_operands = c.most_operands = 1;
  c.examples = {
      {"sibyl export prediction.json -o report.html", "a page that needs nothing else"},
      {"sibyl scale zoo:bert-base --cluster dgx-a100 --devices 1..64 --json | sibyl export - --format csv",
       "a spreadsheet"},
      {"sibyl predict zoo:bert-mini --cluster my-cluster.yaml --devices 8 --json | sibyl export - --format sbatch "
       "-o job.sh; sbatch job.sh",
       "the same plan, trained for real under Slurm"}};
  c.options = {{.name = "--format",
                .value = "FORMAT",
                .help = "what to write",
                .fallback = "html",
                .choices = {"html", "csv", "markdown", "text", "json", "sbatch"}},
               {.name = "--steps", .value = "N", .help = "steps that the sbatch script measures", .fallback = "20"},
               {.name = "--output", .value = "FILE", .help = "where to; standard output unless given", .letter = 'o'},
               {.name = "--force", .help = "replace FILE if it exists"},
               {.name = "--json", .help = "the same as --format json"}};
  return {std::move(c), run_export};
}

}  // namespace sibyl::cli
