// collectives: which collectives the shipped and the user's own calibrations hold, and how well the network model
// predicts those it was not shown, or those that others published.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/quantity.h"
#include "calibration/device_names.h"
#include "calibration/leave_out_collectives.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/verbs.h"
#include "oracle/report/format.h"
#include "oracle/validate/published/collectives.h"

namespace sibyl::cli {
namespace {

using Json = nlohmann::ordered_json;
using enum Column::Align;

struct Page {
  Table table;
  Json rows = Json::array();
};

Result<void> print_page(const Page& page, OutputFormat format) {
  switch (format) {
    case OutputFormat::json:
      return print(Json{{"schema", "sibyl-collectives"}, {"version", 1}, {"rows", page.rows}}.dump(2) + "\n");
    case OutputFormat::csv: return print(csv(page.table));
    case OutputFormat::markdown: return print(markdown(page.table));
    case OutputFormat::text: break;
  }
  return print(aligned_text(page.table));
}

Cell share(double fraction) { return {fmt::format("{:.1f}", 100 * fraction), plain_number(fraction)}; }
Cell count(std::size_t n) { return {grouped(static_cast<std::int64_t>(n)), fmt::format("{}", n)}; }

// One line for each collective, algorithm and placement.
void add_measured(Page& page, const std::string& name, const Calibration& calibration) {
  page.table.columns = {{"calibration", "calibration", left},
                        {"collective", "collective", left},
                        {"algorithm", "algorithm", left},
                        {"ranks", "ranks_per_node"},
                        {"nodes", "nodes"},
                        {"groups", "groups_per_node"},
                        {"samples", "samples"},
                        {"from", "from_bytes"},
                        {"to", "to_bytes"},
                        {"in", "shortest_s"},
                        {"to", "longest_s"}};
  std::map<std::tuple<Collective, Algorithm, GroupPlacement>, std::vector<const CollectiveSample*>> lines;
  for (const CollectiveSample& s : calibration.collectives)
    lines[{s.collective, s.algorithm, s.placement}].push_back(&s);
  for (const auto& [line, samples] : lines) {
    const auto& [collective, algorithm, placement] = line;
    const auto [least, most] = std::ranges::minmax_element(samples, {}, &CollectiveSample::bytes);
    const auto cell = [](const auto& quantity) { return Cell(to_string(quantity), plain_number(quantity.value())); };
    page.table.rows.push_back({name, std::string(to_string(collective)), std::string(to_string(algorithm)),
                               std::to_string(placement.ranks_per_node), std::to_string(placement.nodes),
                               std::to_string(placement.groups_per_node), count(samples.size()), cell((*least)->bytes),
                               cell((*most)->bytes), cell((*least)->time), cell((*most)->time)});
    page.rows.push_back({{"calibration", name},
                         {"collective", to_string(collective)},
                         {"algorithm", to_string(algorithm)},
                         {"ranks_per_node", placement.ranks_per_node},
                         {"nodes", placement.nodes},
                         {"groups_per_node", placement.groups_per_node},
                         {"samples", samples.size()},
                         {"from_bytes", (*least)->bytes.value()},
                         {"to_bytes", (*most)->bytes.value()},
                         {"shortest_s", (*least)->time.value()},
                         {"longest_s", (*most)->time.value()}});
  }
}

void add_errors(Page& page, const std::string& name, const Calibration& calibration) {
  page.table.columns = {{"calibration", "calibration", left},
                        {"left out", "left_out", left},
                        {"collective", "collective", left},
                        {"samples", "samples"},
                        {"mean %", "mean_error"},
                        {"median %", "median_error"},
                        {"p90 %", "p90_error"},
                        {"bias %", "bias"},
                        {"< 1 sd %", "within_one_sd"},
                        {"< 2 sd %", "within_two_sd"}};
  for (const CollectiveErrors& e : left_out_collectives(calibration)) {
    page.table.rows.push_back({name, std::string(to_string(e.left_out)), std::string(to_string(e.collective)),
                               count(e.count), share(e.mean), share(e.median), share(e.p90), share(e.bias),
                               share(e.within_one), share(e.within_two)});
    page.rows.push_back({{"calibration", name},
                         {"left_out", to_string(e.left_out)},
                         {"collective", to_string(e.collective)},
                         {"samples", e.count},
                         {"mean_error", e.mean},
                         {"median_error", e.median},
                         {"p90_error", e.p90},
                         {"bias", e.bias},
                         {"within_one_sd", e.within_one},
                         {"within_two_sd", e.within_two}});
  }
}

Result<int> compare_published(const Arguments& arguments, const std::string& file, OutputFormat format) {
  if (arguments.has("--leave-out") || !arguments.operands().empty())
    return fail(ErrorCode::usage, "published timings are compared by themselves", "--published");
  SIBYL_TRY(const std::string text, read_text(file));
  SIBYL_TRY(const auto rows, published::read_collective_rows(text, file == "-" ? "standard input" : file));
  const auto verdicts = published::judge_collectives(rows);
  if (format == OutputFormat::json) {
    SIBYL_CHECK(print(published::collectives_json(verdicts)));
    return 0;
  }
  const Table table =
      arguments.has("--rows") ? published::collective_rows_table(verdicts) : published::collectives_table(verdicts);
  SIBYL_CHECK(print(format == OutputFormat::csv        ? csv(table)
                    : format == OutputFormat::markdown ? markdown(table)
                                                       : aligned_text(table)));
  return 0;
}

Result<int> run(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  if (const auto file = arguments.text("--published")) return compare_published(arguments, *file, format);
  if (arguments.has("--rows")) return fail(ErrorCode::usage, "has no effect but on published timings", "--rows");
  const std::vector<std::string> names = arguments.operands().empty() ? shipped_calibrations() : arguments.operands();
  Page page;
  for (const std::string& name : names) {
    SIBYL_TRY(const Calibration calibration,
              name.ends_with(".json") ? load_calibration(name) : shipped_calibration(name));
    const std::string known = shipped_device(name).value_or(name);
    arguments.has("--leave-out") ? add_errors(page, known, calibration) : add_measured(page, known, calibration);
  }
  SIBYL_CHECK(print_page(page, format));
  return 0;
}

}  // namespace

Verb collectives_verb() {
  Command c;
  c.name = "collectives";
  c.program = "sibyl collectives";
  c.summary = "show which collectives were measured, and how well others are predicted";
  c.operands = "[DEVICE|CALIBRATION.json]...";
  c.most_operands = 1000;
  c.examples = {{"sibyl collectives h100-sxm", "what was measured: collectives, ranks, sizes"},
                {"sibyl collectives --leave-out", "sizes and counts of ranks predicted from the others, by device"},
                {"sibyl collectives --published tests/data/published_collectives.csv",
                 "against timings that others published, by source"}};
  c.options = concatenated(
      {{{.name = "--leave-out",
         .help = "predict every other size from the rest, and each count of ranks from the others; show the errors"},
        {.name = "--published",
         .value = "FILE",
         .help = "predict published timings, a CSV file of them (docs/formats/published.md), and show the errors"},
        {.name = "--rows", .help = "each published timing by itself"}},
       table_options(),
       output_options()});
  c.notes =
      "Without DEVICE, all that are shipped. Errors are of |predicted / measured - 1|; bias is the median of predicted "
      "/ measured, less 1; sd is the standard deviation that the prediction states, inside which 68 % (two: 95 %) "
      "should lie.";
  return {std::move(c), run};
}

}  // namespace sibyl::cli
