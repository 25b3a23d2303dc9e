#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/progress.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/validate_bench.h"
#include "oracle/cli/validate_published.h"
#include "oracle/cli/verbs.h"
#include "oracle/validate/goals.h"
#include "oracle/validate/process.h"
#include "oracle/validate/ranking.h"

namespace sibyl::cli {
namespace {

// What could be judged, and why the rest could not: `where` names the case.
struct Outcome {
  std::vector<Validated> done;
  std::vector<Error> failed;
  std::optional<Error> ended;
};

// Of a case that failed in a later round the earlier ones are judged.
Result<void> show(const Outcome& outcome, OutputFormat format) {
  const std::vector<Validated>& done = outcome.done;
  if (format == OutputFormat::json) return print(to_json(done, outcome.failed));
  if (format == OutputFormat::csv) return print(csv(to_table(done, outcome.failed)));
  const auto written = [&](const Table& table) {
    return format == OutputFormat::markdown ? markdown(table) : aligned_text(table);
  };
  std::string text;
  if (const std::string emulation = emulation_sentence(done); !emulation.empty()) text += emulation + "\n\n";
  text += written(to_table(done)) + "\n" + summary_sentence(summarize(done)) + "\n";
  if (const std::vector<StrategySummary> strategies = by_strategy(done); strategies.size() > 1)
    text += "\n" + written(to_table(strategies));
  if (const std::vector<Ranking> orders = rankings(done); !orders.empty())
    text += "\n" + written(to_table(orders)) + "\n" + summary_sentence(orders) + "\n";
  if (!outcome.failed.empty()) text += "\n" + written(to_table(outcome.failed));
  return print(text);
}

Result<std::vector<Validated>> judged(const std::vector<Case>& cases, const Bench& bench,
                                      const std::vector<std::vector<TrainingRun>>& runs) {
  std::vector<Validated> done;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (runs[i].empty()) continue;
    SIBYL_TRY(Prediction prediction, bench.prediction(cases[i]));
    done.push_back(
        {cases[i].text, cases[i].work, cases[i].way, cases[i].kind, std::move(prediction), mean_of(runs[i])});
  }
  return done;
}

// Numbers below `cases` are cases, those from there on references, spread evenly among them: a machine that drifts is
// to be the same for both.
std::vector<std::size_t> visiting_order(std::size_t cases, std::size_t references) {
  std::vector<std::size_t> order(cases + references);
  std::iota(order.begin(), order.end(), 0);
  const auto place = [&](std::size_t i) {
    return i < cases ? (2.0 * static_cast<double>(i) + 1) / static_cast<double>(cases)
                     : (2.0 * static_cast<double>(i - cases) + 1) / static_cast<double>(references);
  };
  std::ranges::stable_sort(order, {}, place);
  return order;
}

struct Runs {
  std::vector<std::vector<TrainingRun>> cases, references;
  std::vector<Error> failed;
  std::optional<Error> ended;  // by what, before all was run
};

int most_ranks(const std::vector<Case>& cases) {
  int most = 0;
  for (const Case& one : cases) most = std::max(most, one.strategy.devices());
  return most;
}

// A case that cannot be run does not take the others with it; an interruption does, and a network that cannot be
// measured anew, but for what was trained by then. Without any network nothing can be predicted.
Result<Runs> run_all(std::vector<Case>& cases, std::vector<Case>& references, const Bench& bench, int rounds) {
  Runs runs;
  runs.cases.resize(cases.size());
  runs.references.resize(references.size());
  const std::vector<std::size_t> order = visiting_order(cases.size(), references.size());
  std::vector<bool> given_up(order.size(), false);
  const std::size_t all = order.size() * static_cast<std::size_t>(rounds);
  outlive_interruption();
  const int ranks = std::max(most_ranks(cases), most_ranks(references));
  Progress progress("validating", all);
  for (std::size_t n = 0; n < all; ++n) {
    const std::size_t i = order[n % order.size()];
    const bool is_case = i < cases.size();
    const int round = static_cast<int>(n / order.size()) + 1;
    if (n % order.size() == 0) {
      progress.report(n, "measuring the network");
      if (auto network = bench.measure_network(ranks, round); !network) {
        if (n == 0) return Failure(std::move(network).error());
        say(to_string(network.error()));
        runs.ended = std::move(network).error();
        break;
      }
    }
    Case& one = is_case ? cases[i] : references[i - cases.size()];
    progress.report(n, one.text);
    if (was_interrupted()) {
      runs.ended = Error{ErrorCode::interrupted, "interrupted", one.text, {}};
      break;
    }
    if (given_up[i]) continue;
    Result<TrainingRun> run = bench.measure(one, round);
    if (run) {
      (is_case ? runs.cases[i] : runs.references[i - cases.size()]).push_back(std::move(*run));
      continue;
    }
    given_up[i] = true;
    run.error().where = one.text;
    say(to_string(run.error()));
    if (run.error().code == ErrorCode::interrupted) {
      runs.ended = std::move(run.error());
      break;
    }
    runs.failed.push_back(std::move(run.error()));
  }
  return runs;
}

// Trains the cases, and references beside them: those are kept before the cases are predicted.
Result<Outcome> trained(std::vector<Case>& cases, const Bench& bench, const Arguments& arguments) {
  std::vector<Case> references;
  if (const auto file = arguments.text("--reference")) {
    SIBYL_TRY(references, read_cases(*file));
  }
  SIBYL_TRY(const auto rounds, arguments.integer("--rounds", 1, 1000));
  SIBYL_TRY(Runs runs, run_all(cases, references, bench, static_cast<int>(*rounds)));
  // Some of them, because the rest was never run, are no reason to forget what all of them taught earlier.
  const bool cut_short =
      runs.ended && std::ranges::any_of(runs.references, [](const auto& of_one) { return of_one.empty(); });
  if (!references.empty() && !cut_short) {
    SIBYL_TRY(const std::vector<Validated> steps, judged(references, bench, runs.references));
    if (!steps.empty()) SIBYL_CHECK(bench.record(steps));
  }
  SIBYL_TRY(std::vector<Validated> done, judged(cases, bench, runs.cases));
  return Outcome{std::move(done), std::move(runs.failed), std::move(runs.ended)};
}

// Takes the runs of earlier times. Of several a pipeline has the stages that the first one gave it: with others it is
// another strategy.
Result<Outcome> judged_again(std::vector<Case>& cases, const Bench& bench, const std::vector<std::string>& files) {
  std::vector<std::vector<TrainingRun>> runs(cases.size());
  for (const std::string& file : files) {
    SIBYL_TRY(const std::string text, read_text(file));
    SIBYL_TRY(const auto measured, parse_measurements(text, file));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Case& one = cases[i];
      const auto found = measured.find(one.text);
      if (found == measured.end()) continue;
      const std::vector<std::string>& stages = found->second.stages;
      if (!runs[i].empty() && stages != runs[i].front().stages) {
        say(fmt::format("{}: left out, for it was cut into other stages than in {}: {}", file, files.front(),
                        one.text));
        continue;
      }
      if (one.waits_for_stages() && !stages.empty()) one.place(stages);
      runs[i].push_back(found->second);
    }
  }
  const std::string all_files = fmt::format("{}", fmt::join(files, ", "));
  std::vector<Error> failed;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (runs[i].empty())
      failed.push_back({ErrorCode::bad_input, "there is no run of it in " + all_files, cases[i].text, {}});
  if (failed.size() == cases.size()) return fail(fmt::format("no run of '{}'", cases.front().text), all_files);
  SIBYL_TRY(std::vector<Validated> done, judged(cases, bench, runs));
  return Outcome{std::move(done), std::move(failed), {}};
}

Result<void> check_teaching(const Arguments& arguments, const Bench& bench) {
  for (const char* option : {"--record", "--reference"})
    if (arguments.has(option) && bench.emulates())
      return fail(ErrorCode::usage, "an emulated device teaches nothing about real steps", option);
  for (const char* other : {"--record", "--measured"})
    if (arguments.has("--reference") && arguments.has(other))
      return fail(ErrorCode::usage, fmt::format("reference steps are trained and kept: leave out {}", other),
                  "--reference");
  return {};
}

Result<std::optional<double>> read_limit(const Arguments& arguments, std::string_view option) {
  SIBYL_TRY(const std::optional<double> limit, arguments.number(option));
  if (limit && *limit < 0) return fail(ErrorCode::usage, fmt::format("{:g} is below 0", *limit), std::string(option));
  return limit;
}

Result<Goals> read_goals(const Arguments& arguments) {
  Goals goals;
  SIBYL_TRY(goals.most, read_limit(arguments, "--max-error"));
  SIBYL_TRY(goals.mean, read_limit(arguments, "--max-mean-error"));
  SIBYL_TRY(goals.strategy_mean, read_limit(arguments, "--max-strategy-error"));
  SIBYL_TRY(goals.memory, read_limit(arguments, "--max-memory-error"));
  SIBYL_TRY(const auto wrong, arguments.integer("--max-wrong-pairs", 0, std::numeric_limits<int>::max()));
  if (wrong) goals.wrong_pairs = static_cast<int>(*wrong);
  return goals;
}

Result<int> run_validate(const Arguments& arguments) {
  if (arguments.has("--published")) return validate_published(arguments);
  for (const char* option : {"--source", "--rows"})
    if (arguments.has(option))
      return fail(ErrorCode::usage, "is of published runs", option, "give --published FILE too");
  if (arguments.operands().empty()) return fail(ErrorCode::usage, "CASES is missing", {}, "or give --published FILE");
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  SIBYL_TRY(const Goals goals, read_goals(arguments));
  const auto file = arguments.text("--save");
  if (file) SIBYL_CHECK(check_writable(*file));
  SIBYL_TRY(std::vector<Case> cases, read_cases(arguments.operands().front()));
  SIBYL_TRY(const Bench bench, Bench::make(arguments));
  SIBYL_CHECK(check_teaching(arguments, bench));
  const std::vector<std::string> measured = arguments.all("--measured");
  SIBYL_TRY(const Outcome outcome,
            measured.empty() ? trained(cases, bench, arguments) : judged_again(cases, bench, measured));
  const std::vector<Validated>& done = outcome.done;
  if (file) SIBYL_CHECK(write_file(*file, to_json(done, outcome.failed), true));
  SIBYL_CHECK(show(outcome, format));
  if (outcome.ended) {
    const bool interrupted = outcome.ended->code == ErrorCode::interrupted;
    return fail(outcome.ended->code,
                fmt::format("{}; what was trained by then is judged",
                            interrupted ? "interrupted" : "the network can no longer be measured"));
  }
  std::vector<std::string> sentences = missed(done, goals);
  if (!outcome.failed.empty()) {
    sentences.insert(sentences.begin(),
                     fmt::format("{} case{} could not be {}", outcome.failed.size(),
                                 outcome.failed.size() == 1 ? "" : "s", measured.empty() ? "run" : "judged"));
    return fail(outcome.failed.back().code, fmt::format("{}", fmt::join(sentences, "; ")));
  }
  if (arguments.has("--record")) SIBYL_CHECK(bench.record(done));
  if (!sentences.empty()) return fail(ErrorCode::validation_failed, fmt::format("{}", fmt::join(sentences, "; ")));
  return 0;
}

}  // namespace

Verb validate_verb() {
  Command c;
  c.name = "validate";
  c.program = "sibyl validate";
  c.summary = "predict cases, train them for real on this machine, and compare; or compare with published runs";
  c.operands = "[CASES]";
  c.most_operands = 1;
  c.examples = {{"sibyl validate cases.txt --calibration machine.json",
                 "each line of cases.txt: zoo:resnet18 --batch 4 --optimizer momentum"},
                {"sibyl validate two.txt --calibration pair.json --launcher 'mpirun -np {ranks} --host a,b' --markdown",
                 "cases with --devices 2, over two hosts"},
                {"sibyl validate eight.txt --calibration wire.json --device emulated:dgx1-v100",
                 "more ranks than processors: messages are real, computing only takes its time"},
                {"sibyl validate --published runs.csv --source vTrain-single --rows",
                 "nothing is trained: what others measured, row by row"}};
  c.options = concatenated(
      {Bench::options(),
       {{.name = "--rounds",
         .value = "N",
         .help = "go through the list so often, timing kernels and training anew, and take means, so that "
                 "a machine that drifts is compared with itself",
         .fallback = "1"},
        {.name = "--save", .value = "FILE", .help = "write the results as JSON to this file, too"},
        {.name = "--measured",
         .value = "FILE",
         .help = "do not train: judge predictions on the runs that an earlier --save wrote; on all rounds of several",
         .repeatable = true},
        {.name = "--record",
         .help = "keep the cases in the calibration as reference steps, from which later predictions "
                 "learn how steps differ "
                 "from sums of kernels; replaces earlier ones"},
        {.name = "--reference",
         .value = "FILE",
         .help = "further cases, trained among the others and kept as with --record before these are "
                 "predicted"},
        {.name = "--max-error",
         .value = "FRACTION",
         .help = "fail with exit code 5 if a step time is off by more, as 0.2"},
        {.name = "--max-mean-error", .value = "FRACTION", .help = "the same of the mean over all cases"},
        {.name = "--max-strategy-error",
         .value = "FRACTION",
         .help = "the same of the mean over the cases of each strategy by itself, whatever its degrees and "
                 "micro-batches"},
        {.name = "--max-memory-error",
         .value = "FRACTION",
         .help = "the same of a case's peak memory, where the trainer tells it"},
        {.name = "--max-wrong-pairs",
         .value = "N",
         .help = "the same where more pairs of strategies that predictions tell apart, of one work, come in "
                 "the wrong order"}},
       published_options(),
       table_options(),
       output_options()});
  c.notes =
      "CASES is a text file, a case a line: MODEL and options of `sibyl predict` (--devices --batch --parallel --dim "
      "...); # starts a comment. Of cases that train the same work by different strategies it is also judged whether "
      "the faster one was predicted to be. A pipeline is trained with the stages that were predicted. A case that "
      "cannot be run leaves the others be: it is named in a table of its own, and in what --save writes.\n"
      "Calibrating times kernels; keep the models that you validate on out of the reference steps given to --reference "
      "or "
      "--record.\n"
      "Exit code 5: bytes sent differ from those predicted, or a goal is missed (--max-error, --max-mean-error, "
      "--max-strategy-error, --max-memory-error, --max-wrong-pairs); all that are missed are named.";
  return {std::move(c), run_validate, {}};
}

}  // namespace sibyl::cli
