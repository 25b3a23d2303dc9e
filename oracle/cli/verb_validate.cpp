#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/progress.h"
#include "oracle/cli/console.h"
#include "oracle/cli/external.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/cli/verbs.h"
#include "oracle/validate/process.h"
#include "oracle/validate/validation.h"

namespace sibyl::cli {
namespace {

// A case is a line of the file: a model and options, as `sibyl predict` and `sibyl train` take them.
Command case_command() {
  Command c;
  c.name = "case";
  c.program = "sibyl predict";  // whose options it takes
  c.operands = "MODEL";
  c.least_operands = c.most_operands = 1;
  c.options = concatenated({{{.name = "--devices", .value = "N", .help = "ranks", .fallback = "1"}, framework_option()},
                            strategy_options(),
                            model_options()});
  return c;
}

struct Case {
  std::string text;
  std::vector<std::string> words;
  Arguments arguments;
  Strategy strategy;
};

Result<Case> read_case(const std::string& line) {
  SIBYL_TRY(std::vector<std::string> words, split_words(line));
  SIBYL_TRY(Arguments arguments, Arguments::parse(case_command(), words));
  SIBYL_TRY(const auto devices, arguments.integer("--devices", 1, most_devices));
  SIBYL_TRY(Strategy strategy, read_strategy(arguments, static_cast<int>(*devices)));
  SIBYL_CHECK(read_framework(arguments, strategy));
  return Case{line, std::move(words), std::move(arguments), std::move(strategy)};
}

Result<std::vector<Case>> read_cases(const std::string& path) {
  SIBYL_TRY(const std::string text, read_text(path));
  std::vector<Case> cases;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos || line[first] == '#') continue;
    Result<Case> one = read_case(line.substr(first));
    if (!one) return fail(one.error().message, fmt::format("{}:{}", path, number), one.error().hint);
    cases.push_back(std::move(*one));
  }
  if (cases.empty()) return fail("there is no case in it", path);
  return cases;
}

// What a case is run with.
class Bench {
 public:
  static Result<Bench> make(const Arguments& arguments) {
    Bench bench;
    bench.calibration_ = *arguments.text("--calibration");
    bench.calibrate_ = !arguments.has("--no-calibrate");
    bench.kernel_budget_ = arguments.text("--kernel-budget");
    for (const char* name : {"steps", "warmup", "threads"}) {
      SIBYL_TRY(const auto value, arguments.integer(fmt::format("--{}", name), 1));
      if (std::string_view(name) != "threads")
        bench.run_words_.insert(bench.run_words_.end(), {fmt::format("--{}", name), std::to_string(*value)});
      else
        bench.thread_words_ = {"--threads", std::to_string(*value)};
    }
    if (const auto launcher = arguments.text("--launcher")) {
      auto words = split_words(*launcher);
      if (!words) return fail(ErrorCode::usage, words.error().message, "--launcher");
      bench.launcher_ = std::move(*words);
    }
    std::string trainer;
    for (const auto& [name, path] :
         {std::pair{"sibyl-calibrate", &bench.calibrator_}, {"sibyl-train", &trainer}}) {
      const auto found = find_program(name);
      if (!found)
        return fail(fmt::format("{} is not installed", name), {},
                    "build Sibyl with MPI and libtorch; `sibyl doctor` tells more");
      *path = found->string();
    }
    bench.trainer_ = {trainer};
    if (const auto words = arguments.text("--trainer")) {
      SIBYL_TRY(bench.trainer_, split_words(*words));
    }
    return bench;
  }

  // Trains once, its kernels timed just before: the machine may be another in an hour.
  [[nodiscard]] Result<TrainingRun> measure(const Case& one, int round) const {
    if (calibrate_) SIBYL_CHECK(calibrate(one, round));
    return train(one);
  }

  // With all that the calibration has by now.
  [[nodiscard]] Result<Prediction> prediction(const Case& one) const {
    SIBYL_TRY(const Cluster cluster, load_cluster(calibration_));
    SIBYL_TRY(const Graph graph, load_graph_for(one.arguments, micro_batch_of(one.strategy)));
    return predict(graph, one.strategy, cluster);
  }

  // The factor in force while the cases ran is taken out again, so that recording twice gives the same.
  [[nodiscard]] Result<void> record(const std::vector<Validated>& done) const {
    SIBYL_TRY(Calibration calibration, load_calibration(calibration_));
    calibration.steps = as_step_samples(done, composition_of(calibration.steps).factor);
    return save_calibration(calibration, calibration_);
  }

 private:
  // The launcher's words with {ranks} filled in, then the program's.
  [[nodiscard]] std::vector<std::string> launched(int ranks, const std::vector<std::string>& program) const {
    std::vector<std::string> words;
    for (const std::string& word : launcher_) {
      const std::size_t at = word.find("{ranks}");
      words.push_back(at == std::string::npos ? word
                                              : word.substr(0, at) + std::to_string(ranks) + word.substr(at + 7));
    }
    if (launcher_.empty() && ranks > 1) words = {"mpirun", "-np", std::to_string(ranks)};
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }

  // Times this case's kernels, unless the calibration has `samples` of them already.
  [[nodiscard]] Result<void> calibrate(const Case& one, int samples) const {
    std::vector<std::string> words = launched(one.strategy.devices(), {calibrator_});
    words.insert(words.end(), {"compute", "--for", one.arguments.operands().front(), "--batches",
                               std::to_string(micro_batch_of(one.strategy)), "--optimizer",
                               std::string(to_string(one.strategy.optimizer)), "--samples", std::to_string(samples),
                               "--output", calibration_});
    words.insert(words.end(), thread_words_.begin(), thread_words_.end());
    for (const std::string& dim : one.arguments.all("--dim")) words.insert(words.end(), {"--dim", dim});
    if (kernel_budget_) words.insert(words.end(), {"--kernel-budget", *kernel_budget_});
    return run_process(words).map([](const std::string&) {});
  }

  [[nodiscard]] Result<TrainingRun> train(const Case& one) const {
    std::vector<std::string> words = launched(one.strategy.devices(), trainer_);
    words.insert(words.end(), one.words.begin(), one.words.end());
    words.insert(words.end(), run_words_.begin(), run_words_.end());
    words.insert(words.end(), thread_words_.begin(), thread_words_.end());
    words.insert(words.end(), {"--log-every", "0", "--json"});
    return run_process(words).and_then([&](const std::string& json) { return parse_training_run(json, one.text); });
  }

  std::string calibration_, calibrator_;
  std::vector<std::string> launcher_, trainer_, run_words_, thread_words_;
  std::optional<std::string> kernel_budget_;
  bool calibrate_ = true;
};

Result<void> show(const std::vector<Validated>& done, OutputFormat format) {
  const std::string sentence = summary_sentence(summarize(done));
  switch (format) {
    case OutputFormat::json: return print(to_json(done));
    case OutputFormat::csv: return print(csv(to_table(done)));
    case OutputFormat::markdown: return print(markdown(to_table(done)) + "\n" + sentence + "\n");
    case OutputFormat::text: return print(aligned_text(to_table(done)) + "\n" + sentence + "\n");
  }
  return {};
}

Result<std::vector<Validated>> judged(const std::vector<Case>& cases, const Bench& bench,
                                      const std::vector<std::vector<TrainingRun>>& runs) {
  std::vector<Validated> done;
  for (std::size_t i = 0; i < cases.size() && !runs[i].empty(); ++i) {
    SIBYL_TRY(Prediction prediction, bench.prediction(cases[i]));
    done.push_back({cases[i].text, std::move(prediction), median_of(runs[i])});
  }
  return done;
}

Result<std::vector<Validated>> run_all(const std::vector<Case>& cases, const Bench& bench, int rounds,
                                       OutputFormat format) {
  std::vector<std::vector<TrainingRun>> runs(cases.size());
  Progress progress("validating", cases.size() * static_cast<std::size_t>(rounds));
  std::size_t number = 0;
  for (int round = 1; round <= rounds; ++round)
    for (std::size_t i = 0; i < cases.size(); ++i) {
      progress.report(number++, cases[i].text);
      const Result<TrainingRun> run = bench.measure(cases[i], round);
      if (!run) {
        // What was measured so far is worth keeping.
        if (number > 1) SIBYL_CHECK(judged(cases, bench, runs).and_then([&](const auto& done) { return show(done, format); }));
        return Failure(run.error());
      }
      runs[i].push_back(*run);
    }
  return judged(cases, bench, runs);
}

// Trains the cases, or takes the runs of an earlier time.
Result<std::vector<Validated>> judge(const std::vector<Case>& cases, const Bench& bench, const Arguments& arguments,
                                     OutputFormat format) {
  const auto file = arguments.text("--measured");
  if (!file) {
    SIBYL_TRY(const auto rounds, arguments.integer("--rounds", 1, 1000));
    return run_all(cases, bench, static_cast<int>(*rounds), format);
  }
  SIBYL_TRY(const std::string text, read_text(*file));
  SIBYL_TRY(const auto measured, parse_measurements(text, *file));
  std::vector<std::vector<TrainingRun>> runs;
  for (const Case& one : cases) {
    const auto found = measured.find(one.text);
    if (found == measured.end()) return fail(fmt::format("has no run of '{}'", one.text), *file);
    runs.push_back({found->second});
  }
  return judged(cases, bench, runs);
}

Result<int> run(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  SIBYL_TRY(const auto limit, arguments.number("--max-error"));
  const auto file = arguments.text("--save");
  if (file) SIBYL_CHECK(check_writable(*file));
  SIBYL_TRY(const std::vector<Case> cases, read_cases(arguments.operands().front()));
  SIBYL_TRY(const Bench bench, Bench::make(arguments));
  SIBYL_TRY(const std::vector<Validated> done, judge(cases, bench, arguments, format));
  if (file) SIBYL_CHECK(write_file(*file, to_json(done), true));
  SIBYL_CHECK(show(done, format));
  if (arguments.has("--record")) return bench.record(done).map([] { return 0; });
  const ValidationSummary summary = summarize(done);
  if (limit && summary.max_time_error > *limit)
    return fail(ErrorCode::validation_failed, fmt::format("a step time is off by {:.1f} %, more than {:.1f} %",
                                                          summary.max_time_error * 100, *limit * 100));
  if (!summary.bytes_agree) return fail(ErrorCode::validation_failed, "bytes sent differ from bytes predicted");
  return 0;
}

}  // namespace

Verb validate_verb() {
  Command c;
  c.name = "validate";
  c.program = "sibyl validate";
  c.summary = "predict cases, train them for real on this machine, and compare";
  c.operands = "CASES";
  c.least_operands = c.most_operands = 1;
  c.examples = {{"sibyl validate cases.txt --calibration machine.json",
                 "each line of cases.txt: zoo:resnet18 --batch 4 --optimizer momentum"},
                {"sibyl validate two.txt --calibration pair.json --launcher 'mpirun -np {ranks} --host a,b' --markdown",
                 "cases with --devices 2, over two hosts"}};
  c.options =
      concatenated({{{.name = "--calibration",
                      .value = "FILE",
                      .help = "the machine's calibration; missing kernels are timed and added",
                      .fallback = "calibration.json"},
                     {.name = "--launcher",
                      .value = "WORDS",
                      .help = "what starts a program on {ranks} ranks; mpirun -np {ranks} unless given"},
                     {.name = "--trainer",
                      .value = "WORDS",
                      .help = "what trains a case in place of sibyl-train, given the same options and printing the "
                              "same JSON, as tools/ddp/train.py does"},
                     {.name = "--steps", .value = "N", .help = "steps measured", .fallback = "15"},
                     {.name = "--warmup", .value = "N", .help = "steps before them", .fallback = "3"},
                     {.name = "--rounds",
                      .value = "N",
                      .help = "go through the list so often, timing kernels and training anew; medians count, so that "
                              "a machine that drifts is compared with itself",
                      .fallback = "1"},
                     {.name = "--threads", .value = "N", .help = "compute threads of each rank", .fallback = "1"},
                     {.name = "--kernel-budget", .value = "TIME", .help = "the most time to calibrate one kernel"},
                     {.name = "--save", .value = "FILE", .help = "write the results as JSON to this file, too"},
                     {.name = "--measured",
                      .value = "FILE",
                      .help = "do not train: judge predictions on the runs that an earlier --save wrote"},
                     {.name = "--no-calibrate", .help = "use the calibration as it is"},
                     {.name = "--record",
                      .help = "keep the cases in the calibration as reference steps, from which later predictions "
                              "learn how steps differ "
                              "from sums of kernels; replaces earlier ones"},
                     {.name = "--max-error",
                      .value = "FRACTION",
                      .help = "fail with exit code 5 if a step time is off by more, as 0.2"}},
                    table_options(),
                    output_options()});
  c.notes =
      "CASES is a text file, a case a line: MODEL and options of `sibyl predict` (--devices --batch --optimizer --dim "
      "...); # starts a "
      "comment. Calibrating times kernels, messages and the reference steps given to --record; keep the models that "
      "you "
      "validate on out of the reference.\n"
      "Exit code 5: bytes sent differ from those predicted, or a step time is off by more than --max-error.";
  return {std::move(c), run, {}};
}

}  // namespace sibyl::cli
