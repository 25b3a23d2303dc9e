#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/progress.h"
#include "base/shell.h"
#include "oracle/axes.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/cli/verbs.h"
#include "oracle/predict.h"
#include "oracle/report/search_report.h"
#include "oracle/search/search.h"
#include "oracle/validate/process.h"

namespace sibyl::cli {
namespace {

constexpr int most_kept = 10000;

// What is searched is not said.
std::vector<Option> fixed_options() {
  std::vector<Option> options = strategy_options();
  std::erase_if(options, [](const Option& option) {
    return std::ranges::count(std::array{"--parallel", "--split-until", "--micro-batches", "--schedule", "--stages",
                                         "--zero", "--reduce-each", "--recompute"},
                              option.name) > 0;
  });
  return options;
}

std::string variation_words() {
  std::vector<std::string> words;
  for (const SearchVariation& one : search_variations()) words.push_back(fmt::format("{} ({})", one.word, one.what));
  return fmt::format("{}", fmt::join(words, ", "));
}

Result<std::vector<int>> read_counts(const Arguments& arguments, const Cluster& cluster) {
  const auto text = arguments.text("--devices");
  if (!text) return std::vector<int>{cluster.devices()};
  return parse_device_counts(*text);
}

Result<SearchSpace> read_space(const Arguments& arguments, const Cluster& cluster) {
  SearchSpace space;
  SIBYL_TRY(space.devices, read_counts(arguments, cluster));
  SIBYL_TRY(space.fixed, read_strategy(arguments, space.devices.back()));
  read_data_source(arguments, space.fixed);
  SIBYL_CHECK(read_framework(arguments, space.fixed));
  if (const auto axes = arguments.text("--axes")) SIBYL_CHECK(parse_axes(*axes, space));
  if (const auto words = arguments.text("--vary")) SIBYL_CHECK(parse_varied(*words, space));
  const std::array<std::pair<bool, const char*>, 8> varied{{{space.orders, "--order"},
                                                            {!space.buckets.empty(), "--bucket"},
                                                            {!space.buckets.empty(), "--no-overlap"},
                                                            {!space.compressions.empty(), "--compress"},
                                                            {!space.context_exchanges.empty(), "--context-exchange"},
                                                            {space.overlaps_tensor, "--overlap-tensor"},
                                                            {space.gathers, "--backward-prefetch"},
                                                            {!space.offloads.empty(), "--offload"}}};
  for (const auto& [varies, option] : varied)
    if (varies && arguments.has(option))
      return fail(ErrorCode::usage, fmt::format("what is varied cannot be said as well: {}", option), "--vary",
                  fmt::format("leave out {}", option));
  if (const auto sizes = arguments.text("--micro-batch-sizes")) {
    SIBYL_TRY(space.micro_batches, parse_integer_list(*sizes, "--micro-batch-sizes"));
  }
  return space;
}

// All of `sibyl predict` but the strategy's own words. The batch is that of the step, whatever the devices.
std::string command_for(const Arguments& arguments, std::int64_t batch, const Cluster& cluster, const Cluster& room) {
  std::vector<Option> options = concatenated(
      {{cluster_option()}, machine_options(), fixed_options(), {data_option(), framework_option()}, model_options()});
  std::erase_if(options, [](const Option& option) {  // said anew, or with the strategy
    constexpr std::array again = {"--batch",         "--order",   "--bucket",           "--no-overlap",
                                  "--compress",      "--offload", "--context-exchange", "--backward-prefetch",
                                  "--overlap-tensor"};
    return std::ranges::count(again, option.name) > 0;
  });
  std::string command = "sibyl predict " + shell_word(arguments.operands().front());
  for (const std::string& word : given_words(arguments, options)) command += " " + shell_word(word);
  if (room.nodes != cluster.nodes) command += fmt::format(" --nodes={}", room.nodes);
  return command + fmt::format(" --batch={}", batch);
}

Result<void> read_cost(const Arguments& arguments, SearchReport& report) {
  SIBYL_TRY(const auto samples, arguments.integer("--samples", 1));
  SIBYL_TRY(const auto price, arguments.number("--price"));
  if (price && !samples) return fail(ErrorCode::usage, "--price: of which --samples?");
  if (price && !(*price > 0)) return fail(ErrorCode::usage, fmt::format("--price: {} is not above 0", *price));
  report.samples = samples.value_or(0);
  report.device_hour_price = price.value_or(0);
  return {};
}

Failure why_none(const SearchResult& result, const std::string& model) {
  const std::string message = "no strategy of the space can be run";
  if (result.too_large > 0 || result.left_out.empty())
    return fail(ErrorCode::infeasible, message, model,
                "allow more devices, a larger --memory or smaller --micro-batch-sizes");
  const LeftOut& reason = result.left_out.front();
  const std::string reasons =
      result.left_out.size() > 1 ? fmt::format("; the first of {} reasons: ", result.left_out.size()) : ": ";
  return fail(ErrorCode::infeasible, message + reasons + reason.why, model,
              reason.hint.empty() ? "allow other --axes or --devices" : reason.hint);
}

Result<int> run_search(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  SIBYL_TRY(const Cluster cluster, read_cluster(arguments));
  SIBYL_TRY(const SearchSpace space, read_space(arguments, cluster));
  SearchOptions options;
  SIBYL_TRY(const auto keep, arguments.integer("--keep", 1, most_kept));
  options.keep = static_cast<std::size_t>(keep.value_or(10));
  SIBYL_TRY(const auto memory, arguments.bytes("--memory"));
  if (memory && memory->value() < 1) return fail(ErrorCode::usage, "must be at least one byte", "--memory");
  options.memory = memory.value_or(Bytes{});
  options.exhaustive = arguments.has("--exhaustive");
  SIBYL_TRY(const Graph graph, load_graph_for(arguments, 1));
  const int per_node = cluster.devices_per_node, most = space.devices.back();
  SIBYL_TRY(const Cluster room, most <= cluster.devices()
                                    ? Result<Cluster>(cluster)
                                    : resized(cluster, (most + per_node - 1) / per_node, per_node));
  outlive_interruption();
  options.cancelled = was_interrupted;
  SearchReport report{model_name(arguments.operands().front()), cluster.name, {}, {}};
  SIBYL_CHECK(read_cost(arguments, report));
  report.command = command_for(arguments, space.fixed.global_batch, cluster, room);
  {
    std::optional<Progress> progress;
    options.progress = [&](std::size_t done, std::size_t total) {
      if (!progress) progress.emplace("searching", total);
      progress->report(done);
    };
    SIBYL_TRY(report.result, search(graph, space, room, options));
  }
  if (arguments.has("--limits") && !report.result.best.empty()) {
    SIBYL_TRY(const Prediction recommended, predict(graph, report.result.recommended.strategy, room));
    report.limits = recommended.limits;
  }
  switch (format) {
    case OutputFormat::json: SIBYL_CHECK(print(to_json(report))); break;
    case OutputFormat::csv: SIBYL_CHECK(print(csv(to_table(report)))); break;
    case OutputFormat::markdown: SIBYL_CHECK(print(markdown(to_table(report)))); break;
    case OutputFormat::text: SIBYL_CHECK(print(to_text(report, text_style(arguments)))); break;
  }
  if (report.result.cancelled) return exit_code(ErrorCode::interrupted);
  if (!report.result.best.empty()) return 0;
  return why_none(report.result, report.model);
}

}  // namespace

Verb search_verb() {
  Command c;
  c.name = "search";
  c.program = "sibyl search";
  c.summary = "find the fastest ways to split a model over a cluster, and say why the others lose";
  c.operands = "MODEL";
  c.least_operands = c.most_operands = 1;
  c.examples = {
      {"sibyl search zoo:gpt2-xl --cluster dgx-a100 --devices 8 --batch 64 --dim seq=1024 --precision bf16 --optimizer "
       "adamw",
       "all meshes, schedules, micro-batches, ZeRO and recomputing for one node"},
      {"sibyl search zoo:resnet50 --cluster abci-v100 --devices 4,8,16 --batch 512 --axes data,spatial,filter",
       "three device counts, and the ways to split images and filters"}};
  c.options = concatenated(
      {{cluster_option()},
       machine_options(),
       {{.name = "--devices",
         .value = "LIST",
         .help = "1,2,8 or 1..64 (or 1-64: doubling, and the end) or 4..16:4 (in steps, and the end); the whole "
                 "cluster unless given"},
        {.name = "--axes",
         .value = "AXIS,…",
         .help = "what may be split: " + axis_choices("", "") + "; data, tensor, sequence and pipeline unless given"},
        {.name = "--micro-batch-sizes",
         .value = "N,…",
         .help = "samples that a replica may take at once, beside all of its own; 1, 2, 4 … 1024 unless given"},
        {.name = "--vary", .value = "WHAT,…", .help = "try several of these, too: " + variation_words()},
        {.name = "--memory", .value = "SIZE", .help = "of a device that may be used; all it has unless given"},
        {.name = "--keep", .value = "N", .help = "how many of the fastest are shown", .fallback = "10"},
        {.name = "--samples", .value = "N", .help = "say what training on so many takes, in device-hours, too"},
        {.name = "--price", .value = "AMOUNT", .help = "of a device for an hour: with --samples, say what that costs"},
        {.name = "--limits", .help = "say what limits the recommended strategy, as `sibyl predict` does"},
        {.name = "--exhaustive",
         .help = "simulate every strategy, not only those that a formula finds fast or small: the same answer, later"}},
       fixed_options(),
       {data_option(), framework_option()},
       model_options(),
       table_options(),
       output_options()});
  c.notes =
      "Ctrl-C ends the search and shows what was found by then. Device counts beyond the cluster's size are priced as "
      "more nodes of the\n"
      "same kind. docs/search.md tells what is tried and how it is judged; JSON keys in docs/formats/search.md.";
  return {std::move(c), run_search};
}

}  // namespace sibyl::cli
