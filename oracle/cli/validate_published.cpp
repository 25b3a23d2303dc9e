#include "oracle/cli/validate_published.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/cli/console.h"
#include "oracle/validate/published/judge.h"

namespace sibyl::cli {
namespace {

using namespace published;

Result<std::vector<Row>> wanted_rows(const Arguments& arguments, const std::string& file) {
  SIBYL_TRY(const std::string text, read_text(file));
  SIBYL_TRY(std::vector<Row> rows, read_rows(text, file == "-" ? "standard input" : file));
  const std::vector<std::string> sources = arguments.all("--source");
  if (sources.empty()) return rows;
  std::vector<std::string> known;
  for (const Row& row : rows)
    if (std::ranges::find(known, row.source) == known.end()) known.push_back(row.source);
  for (const std::string& source : sources)
    if (std::ranges::find(known, source) == known.end()) {
      const auto meant = nearest(source, known);
      return fail(fmt::format("has no row of the source '{}'", source), file,
                  meant ? fmt::format("did you mean {}?", *meant) : std::string{});
    }
  std::erase_if(rows, [&](const Row& row) { return std::ranges::find(sources, row.source) == sources.end(); });
  return rows;
}

Result<void> check_alone(const Arguments& arguments) {
  if (!arguments.operands().empty())
    return fail(ErrorCode::usage, "either CASES are trained and compared, or published runs are: give one of them",
                "--published");
  for (const char* option : {"--devices",          "--calibration",    "--launcher",       "--trainer",
                             "--device",           "--steps",          "--warmup",         "--threads",
                             "--kernel-budget",    "--known-to",       "--network-budget", "--cache",
                             "--no-calibrate",     "--rounds",         "--save",           "--measured",
                             "--record",           "--reference",      "--max-mean-error", "--max-strategy-error",
                             "--max-memory-error", "--max-wrong-pairs"})
    if (arguments.has(option)) return fail(ErrorCode::usage, "has no effect on published runs", option);
  return {};
}

}  // namespace

std::vector<Option> published_options() {
  return {
      {.name = "--published",
       .value = "FILE",
       .help = "instead of training: predict published runs, a CSV file of them (docs/formats/published.md)"},
      {.name = "--source", .value = "NAME", .help = "of published runs only this source's", .repeatable = true},
      {.name = "--rows", .help = "show every published run, too: what was assumed for it, or why it is not priced"}};
}

Result<int> validate_published(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  SIBYL_CHECK(check_alone(arguments));
  SIBYL_TRY(const auto limit, arguments.number("--max-error"));
  SIBYL_TRY(const std::vector<Row> rows, wanted_rows(arguments, *arguments.text("--published")));
  const std::vector<Verdict> verdicts = judge(rows);
  const std::vector<SourceSummary> summaries = summarize(verdicts);
  if (format == OutputFormat::json) {
    SIBYL_CHECK(print(to_json(verdicts)));
  } else if (format == OutputFormat::csv) {
    SIBYL_CHECK(print(csv(rows_table(verdicts))));
  } else {
    const auto written = [&](const Table& table) {
      return format == OutputFormat::markdown ? markdown(table) : aligned_text(table);
    };
    std::string text = written(sources_table(summaries));
    if (arguments.has("--rows")) text += "\n" + written(rows_table(verdicts));
    if (const std::string reasons = reasons_text(verdicts); !reasons.empty()) text += "\n" + reasons;
    SIBYL_CHECK(print(text));
  }
  for (const SourceSummary& summary : summaries)
    if (limit && summary.max_error > *limit)
      return fail(ErrorCode::validation_failed, fmt::format("{}: a row is off by {:.1f} %, more than {:.1f} %",
                                                            summary.source, summary.max_error * 100, *limit * 100));
  return 0;
}

}  // namespace sibyl::cli
