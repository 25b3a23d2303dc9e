// collectives: which collectives the shipped and the user's own calibrations hold, and how well the network model
// predicts those it was not shown, or those that others published.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/quantity.h"
#include "calibration/cluster.h"
#include "calibration/device_names.h"
#include "calibration/leave_out_collectives.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/verbs.h"
#include "oracle/report/format.h"
#include "oracle/report/table_json.h"
#include "oracle/validate/published/collectives.h"

namespace sibyl::cli {
namespace {

using enum Column::Align;

// One line for each collective, algorithm and placement.
void add_measured(Table& table, const std::string& name, const std::vector<CollectiveSample>& all) {
  table.columns = {{"calibration", "calibration", left},
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
  for (const CollectiveSample& s : all) lines[{s.collective, s.algorithm, s.placement}].push_back(&s);
  for (const auto& [line, samples] : lines) {
    const auto& [collective, algorithm, placement] = line;
    const auto [least, most] = std::ranges::minmax_element(samples, {}, &CollectiveSample::bytes);
    const auto cell = [](const auto& quantity) { return Cell(to_string(quantity), plain_number(quantity.value())); };
    table.rows.push_back({name, std::string(to_string(collective)), std::string(to_string(algorithm)),
                          std::to_string(placement.ranks_per_node), std::to_string(placement.nodes),
                          std::to_string(placement.groups_per_node), count_cell(samples.size()), cell((*least)->bytes),
                          cell((*most)->bytes), cell((*least)->time), cell((*most)->time)});
  }
}

void add_errors(Table& table, const std::string& name, const std::vector<LeftOutCollective>& predicted) {
  table.columns = {{"calibration", "calibration", left},
                   {"left out", "left_out", left},
                   {"collective", "collective", left},
                   {"samples", "samples"},
                   {"mean %", "mean_error"},
                   {"median %", "median_error"},
                   {"p90 %", "p90_error"},
                   {"bias %", "bias"},
                   {"< 1 sd %", "within_one_sd"},
                   {"< 2 sd %", "within_two_sd"}};
  for (const CollectiveErrors& e : errors_of(predicted)) {
    table.rows.push_back({name, std::string(to_string(e.left_out)), std::string(to_string(e.collective)),
                          count_cell(e.count), percent_cell(e.mean), percent_cell(e.median), percent_cell(e.p90),
                          percent_cell(e.bias), percent_cell(e.within_one), percent_cell(e.within_two)});
  }
}

// One line for each that was left out.
void add_left_out(Table& table, const std::string& name, const std::vector<LeftOutCollective>& predicted) {
  table.columns = {{"calibration", "calibration", left}, {"left out", "left_out", left},
                   {"collective", "collective", left},   {"algorithm", "algorithm", left},
                   {"ranks", "ranks_per_node"},          {"nodes", "nodes"},
                   {"groups", "groups_per_node"},        {"bytes", "bytes"},
                   {"measured", "measured_s"},           {"predicted", "predicted_s"},
                   {"sd %", "relative_error"},           {"error", "error"}};
  for (const auto& [left_out, sample, estimate] : predicted) {
    const auto time = [](Seconds t) { return Cell(to_string(t), plain_number(t.value())); };
    const double off = estimate.time.time / sample.time - 1;
    table.rows.push_back({name, std::string(to_string(left_out)), std::string(to_string(sample.collective)),
                          std::string(to_string(estimate.algorithm)), std::to_string(sample.placement.ranks_per_node),
                          std::to_string(sample.placement.nodes), std::to_string(sample.placement.groups_per_node),
                          Cell(to_string(sample.bytes), plain_number(sample.bytes.value())), time(sample.time),
                          time(estimate.time.time), percent_cell(estimate.time.relative_error),
                          Cell(signed_percent(off), plain_number(off))});
  }
}

struct SizeRange {
  Bytes least, most{std::numeric_limits<double>::infinity()};
};

Result<SizeRange> size_range(const Arguments& arguments) {
  SizeRange range;
  const auto text = arguments.text("--sizes");
  if (!text) return range;
  const std::size_t colon = text->find(':');
  if (colon == std::string::npos)
    return fail(ErrorCode::usage, fmt::format("'{}' is not like 1KiB:64MiB", *text), "--sizes");
  const auto least = parse_bytes(text->substr(0, colon)), most = parse_bytes(text->substr(colon + 1));
  for (const auto* size : {&least, &most})
    if (!*size) return fail(ErrorCode::usage, size->error().message, "--sizes", size->error().hint);
  range = {*least, *most};
  if (range.least > range.most) return fail(ErrorCode::usage, "the first is the least", "--sizes");
  return range;
}

Result<void> compare_published(const Arguments& arguments, const std::string& file, OutputFormat format) {
  if (arguments.has("--leave-out") || arguments.has("--sizes") || !arguments.operands().empty())
    return fail(ErrorCode::usage, "published timings are compared by themselves", "--published");
  SIBYL_TRY(const std::string text, read_text(file));
  SIBYL_TRY(const auto rows, published::read_collective_rows(text, file == "-" ? "standard input" : file));
  const auto verdicts = published::judge_collectives(rows);
  const Table table =
      arguments.has("--rows") ? published::collective_rows_table(verdicts) : published::collectives_table(verdicts);
  return print_table(table, published::collectives_json(verdicts), format);
}

// What was measured, and with --leave-out how well it is foretold.
struct Known {
  std::string name;
  std::vector<CollectiveSample> measured;
  std::vector<LeftOutCollective> left_out;
};

Result<Known> look_up(const std::string& name, bool leave_out) {
  Known known{shipped_device(name).value_or(name), {}, {}};
  if (name.ends_with(".yaml") || name.ends_with(".yml")) {
    SIBYL_TRY(const Cluster cluster, load_cluster(name));
    known.measured = cluster.network.collectives();
    if (leave_out) known.left_out = left_out_collectives(cluster.network);
  } else {
    SIBYL_TRY(const Calibration calibration,
              name.ends_with(".json") ? load_calibration(name) : shipped_calibration(name));
    known.measured = calibration.collectives;
    if (leave_out) known.left_out = left_out_collectives(calibration);
  }
  return known;
}

Result<int> run_collectives(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  if (const auto file = arguments.text("--published")) {
    SIBYL_CHECK(compare_published(arguments, *file, format));
    return 0;
  }
  const bool leave_out = arguments.has("--leave-out");
  for (const char* option : {"--rows", "--sizes"})
    if (!leave_out && arguments.has(option)) return fail(ErrorCode::usage, "has no effect without --leave-out", option);
  SIBYL_TRY(const SizeRange sizes, size_range(arguments));
  const std::vector<std::string> names = arguments.operands().empty() ? shipped_calibrations() : arguments.operands();
  Table table;
  for (const std::string& name : names) {
    SIBYL_TRY(Known known, look_up(name, leave_out));
    std::erase_if(known.left_out, [&](const LeftOutCollective& one) {
      return one.sample.bytes < sizes.least || one.sample.bytes > sizes.most;
    });
    if (!leave_out)
      add_measured(table, known.name, known.measured);
    else if (arguments.has("--rows"))
      add_left_out(table, known.name, known.left_out);
    else
      add_errors(table, known.name, known.left_out);
  }
  SIBYL_CHECK(print_table(table, table_json(table, "sibyl-collectives"), format));
  return 0;
}

}  // namespace

Verb collectives_verb() {
  Command c;
  c.name = "collectives";
  c.program = "sibyl collectives";
  c.summary = "show which collectives were measured, and how well others are predicted";
  c.operands = "[DEVICE|CALIBRATION.json|CLUSTER.yaml]...";
  c.most_operands = 1000;
  c.examples = {
      {"sibyl collectives h100-sxm", "what was measured: collectives, ranks, sizes"},
      {"sibyl collectives --leave-out", "sizes and counts of ranks predicted from the others, by device"},
      {"sibyl collectives mine.json --leave-out", "how far messages foretell collectives on this network"},
      {"sibyl collectives mine.yaml --leave-out --rows", "each of them, on a machine as a cluster file has it"},
      {"sibyl collectives --published tests/data/published_collectives.csv",
       "against timings that others published, by source"}};
  c.options = concatenated(
      {{{.name = "--leave-out",
         .help = "predict every other size from the rest, the longest from the shorter ones, each count of ranks from "
                 "the others, and all from messages alone; show the errors"},
        {.name = "--published",
         .value = "FILE",
         .help = "predict published timings, a CSV file of them (docs/formats/published.md), and show the errors"},
        {.name = "--rows", .help = "each left out or published timing by itself"},
        {.name = "--sizes", .value = "FROM:TO", .help = "of those left out, judge these sizes alone: 1KiB:64MiB"}},
       table_options(),
       output_options()});
  c.notes =
      "Without DEVICE, all that are shipped. A calibration by itself does not say how switches join its nodes; a "
      "cluster file does. Errors are of |predicted / measured - 1|; bias is the median of predicted "
      "/ measured, less 1; sd is the standard deviation that the prediction states, inside which 68 % (two: 95 %) "
      "should lie.";
  return {std::move(c), run_collectives};
}

}  // namespace sibyl::cli
