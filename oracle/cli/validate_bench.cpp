#include "oracle/cli/validate_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "oracle/cli/console.h"
#include "oracle/cli/external.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/validate/process.h"

namespace sibyl::cli {
namespace {

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

// "zoo:gpt2-mini, 8 samples, seq=128, adamw, 2 ranks"
std::string work_of(const Arguments& arguments, const Strategy& strategy) {
  std::string text = fmt::format("{}, {} samples", model_name(arguments.operands().front()), strategy.global_batch);
  for (const char* option : {"--dim", "--loss", "--optimizer", "--precision"})
    for (const std::string& value : arguments.all(option)) text += ", " + value;
  return text + fmt::format(", {} rank{}", strategy.devices(), strategy.devices() == 1 ? "" : "s");
}

// "pipeline=2 micro-batches=4 schedule=gpipe"
std::string way_of(const Arguments& arguments, const Strategy& strategy) {
  constexpr std::string_view alone = "data=1,";
  std::string text = parallel_text(strategy);
  if (text.starts_with(alone)) text.erase(0, alone.size());
  std::vector<Option> options = strategy_options();
  std::erase_if(options, [](const Option& o) {
    constexpr std::array<std::string_view, 5> said = {"--batch", "--parallel", "--stages", "--optimizer",
                                                      "--precision"};
    return std::ranges::count(said, o.name) > 0;
  });
  for (const std::string& word : given_words(arguments, options)) text += " " + word.substr(2);
  return text;
}

// The same without degrees, and without what a pipeline's schedule and micro-batches are: "pipeline", "data zero=1".
std::string kind_of(const std::string& way) {
  std::istringstream words(way);
  std::string axes, kind, word;
  words >> axes;
  bool degree = false;
  for (const char c : axes) {
    degree = c == '=' || (degree && c != ',');
    if (!degree) kind += c;
  }
  while (words >> word)
    if (!word.starts_with("micro-batches=") && !word.starts_with("schedule=")) kind += " " + word;
  return kind;
}

Result<Case> read_case(const std::string& line) {
  SIBYL_TRY(std::vector<std::string> words, split_words(line));
  SIBYL_TRY(Arguments arguments, Arguments::parse(case_command(), words));
  SIBYL_TRY(const auto devices, arguments.integer("--devices", 1, most_devices));
  SIBYL_TRY(Strategy strategy, read_strategy(arguments, static_cast<int>(*devices)));
  SIBYL_CHECK(read_framework(arguments, strategy));
  std::string work = work_of(arguments, strategy), way = way_of(arguments, strategy), kind = kind_of(way);
  return Case{line,
              std::move(work),
              std::move(way),
              std::move(kind),
              std::move(words),
              std::move(arguments),
              std::move(strategy)};
}

// What follows "emulated:".
Result<std::string> emulated_file(const std::string& device) {
  constexpr std::string_view emulated = "emulated:";
  if (device.starts_with(emulated) && device.size() > emulated.size()) return device.substr(emulated.size());
  return fail(ErrorCode::usage, fmt::format("'{}' is no device", device), "--device",
              "real, emulated:FILE, or emulated:FILE,spread");
}

}  // namespace

void Case::place(std::vector<std::string> stages) {
  words.insert(words.end(), {"--stages", fmt::format("{}", fmt::join(stages, ","))});
  strategy.stage_starts = std::move(stages);
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

std::vector<Option> Bench::options() {
  return {
      {.name = "--calibration",
       .value = "FILE",
       .help = "the machine's calibration; missing kernels are timed and added",
       .fallback = "calibration.json"},
      {.name = "--launcher",
       .value = "WORDS",
       .help = "what starts a program on {ranks} ranks; mpirun -np {ranks} unless given"},
      {.name = "--trainer",
       .value = "WORDS",
       .help = "what trains a case in place of sibyl-train, given the same options and printing the same JSON, as "
               "tools/ddp/train.py does"},
      {.name = "--device",
       .value = "real|emulated:FILE[,spread]",
       .help = "emulated: train on FILE's device (a calibration or a cluster), which computes nothing but takes its "
               "time; --calibration is then the network's",
       .fallback = "real"},
      {.name = "--steps", .value = "N", .help = "steps measured", .fallback = "15"},
      {.name = "--warmup", .value = "N", .help = "steps before them", .fallback = "3"},
      {.name = "--threads", .value = "N", .help = "compute threads of each rank", .fallback = "1"},
      {.name = "--kernel-budget", .value = "TIME", .help = "the most time to calibrate one kernel"},
      {.name = "--known-to",
       .value = "SHARE",
       .help = "time kernels of 2 ms and longer again before each case, not once a round, while their mean is known no "
               "better than to this share of it"},
      {.name = "--network-budget",
       .value = "TIME",
       .help = "measure the network anew before each round, for so long at most, and take means; not at all unless "
               "given"},
      {.name = "--cache",
       .value = "SIZE",
       .help = "the last-level cache to calibrate kernels outside of; found by reading unless given"},
      {.name = "--no-calibrate", .help = "use the calibration as it is"}};
}

namespace {

// How often a file has the message that is timed first, and most often. What it cannot be read for is told later.
int times_known(const std::string& file) {
  const Result<Calibration> calibration = load_calibration(file);
  if (!calibration || calibration->point_to_point.empty()) return 0;
  const PointToPointSample& first = calibration->point_to_point.front();
  return static_cast<int>(std::ranges::count_if(calibration->point_to_point, [&](const PointToPointSample& s) {
    return s.same_node == first.same_node && s.both_ways == first.both_ways && s.pairs == first.pairs &&
           s.bytes == first.bytes;
  }));
}

}  // namespace

Result<Bench> Bench::make(const Arguments& arguments) {
  Bench bench;
  bench.calibration_ = *arguments.text("--calibration");
  bench.calibrate_ = !arguments.has("--no-calibrate");
  bench.kernel_budget_ = arguments.text("--kernel-budget");
  SIBYL_CHECK(arguments.number("--known-to").map([](const auto&) {}));
  bench.known_to_ = arguments.text("--known-to");
  SIBYL_CHECK(arguments.seconds("--network-budget").map([](const auto&) {}));
  bench.network_budget_ = arguments.text("--network-budget");
  if (bench.network_budget_) bench.network_known_ = times_known(bench.calibration_);
  bench.cache_ = arguments.text("--cache");
  if (const std::string device = *arguments.text("--device"); device != "real") {
    SIBYL_TRY(std::string file, emulated_file(device));
    constexpr std::string_view spread = ",spread";
    bench.varies_ = file.ends_with(spread);
    if (bench.varies_) file.resize(file.size() - spread.size());
    bench.emulated_ = std::move(file);
    bench.calibrate_ = false;
    bench.run_words_ = {"--device", device};
  }
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
  if (arguments.has("--measured")) return bench;  // nothing is run
  std::string trainer;
  for (const auto& [name, path] : {std::pair{"sibyl-calibrate", &bench.calibrator_}, {"sibyl-train", &trainer}}) {
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

Result<void> Bench::measure_network(int ranks, int round) const {
  if (!network_budget_ || ranks < 2) return {};
  std::vector<std::string> words = launched(ranks, {calibrator_});
  words.insert(words.end(), {"network", "--budget", *network_budget_, "--network-samples",
                             std::to_string(network_known_ + round), "--output", calibration_});
  if (emulated_) words.insert(words.end(), {"--between-messages", "sleep"});
  words.insert(words.end(), thread_words_.begin(), thread_words_.end());
  if (cache_) words.insert(words.end(), {"--cache", *cache_});
  return run_process(words).map([](const std::string&) {});
}

Result<TrainingRun> Bench::measure(Case& one, int round) const {
  if (calibrate_) SIBYL_CHECK(calibrate(one, round));
  if (one.waits_for_stages()) {
    SIBYL_TRY(const Prediction predicted, prediction(one));
    std::vector<std::string> stages;
    for (std::size_t s = 1; s < predicted.stages.size(); ++s) stages.push_back(predicted.stages[s].first);
    one.place(std::move(stages));
    if (calibrate_) SIBYL_CHECK(calibrate(one, round));
  }
  SIBYL_TRY(TrainingRun run, train(one));
  run.stages = one.strategy.stage_starts;
  return run;
}

Result<Prediction> Bench::prediction(const Case& one) const {
  SIBYL_TRY(const Cluster cluster, this->cluster());
  SIBYL_TRY(const Graph graph, load_graph_for(one.arguments, micro_batch_of(one.strategy)));
  return predict(graph, one.strategy, cluster);
}

// Neither messages nor other ranks slow down a device that does not compute, and no rank is slower than another unless
// times vary.
Result<Cluster> Bench::cluster() const {
  if (!emulated_) return load_cluster(calibration_);
  SIBYL_TRY(const Cluster wire, load_cluster(calibration_));
  SIBYL_TRY(Cluster devices, load_cluster(*emulated_));
  if (!varies_) devices.composition.spread = 0;
  devices.overlap = {};
  devices.meetings = {};
  devices.overlap_known = true;
  devices.overlap_by_message.clear();
  devices.kernels = devices.kernels.as_timed();
  return on_network(std::move(devices), wire);
}

Result<void> Bench::record(const std::vector<Validated>& done) const {
  SIBYL_TRY(Calibration calibration, load_calibration(calibration_));
  calibration.steps =
      with_earlier_rounds(as_step_samples(done, composition_of(calibration.steps).factor), calibration.steps);
  return save_calibration(calibration, calibration_);
}

// The launcher's words with {ranks} filled in, then the program's.
std::vector<std::string> Bench::launched(int ranks, const std::vector<std::string>& program) const {
  std::vector<std::string> words;
  for (const std::string& word : launcher_) {
    const std::size_t at = word.find("{ranks}");
    words.push_back(at == std::string::npos ? word : word.substr(0, at) + std::to_string(ranks) + word.substr(at + 7));
  }
  if (launcher_.empty() && ranks > 1) words = {"mpirun", "-np", std::to_string(ranks)};
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

// Times the kernels of this case's plan, unless the calibration has `samples` of them already.
Result<void> Bench::calibrate(const Case& one, int samples) const {
  std::vector<Option> splitting = concatenated({strategy_options(), model_options()});
  std::erase_if(splitting,
                [](const Option& o) { return o.name == "--batch" || o.name == "--parallel" || o.name == "--stages"; });
  std::vector<std::string> words = launched(one.strategy.devices(), {calibrator_});
  words.insert(words.end(), {"compute", "--for", one.arguments.operands().front(), "--batches",
                             std::to_string(micro_batch_of(one.strategy)), "--parallel", parallel_text(one.strategy),
                             "--samples", std::to_string(samples), "--output", calibration_});
  for (const std::string& word : given_words(one.arguments, splitting)) words.push_back(word);
  if (!one.strategy.stage_starts.empty())
    words.insert(words.end(), {"--stages", fmt::format("{}", fmt::join(one.strategy.stage_starts, ","))});
  words.insert(words.end(), thread_words_.begin(), thread_words_.end());
  if (kernel_budget_) words.insert(words.end(), {"--kernel-budget", *kernel_budget_});
  if (known_to_) words.insert(words.end(), {"--known-to", *known_to_});
  if (cache_) words.insert(words.end(), {"--cache", *cache_});
  return run_process(words).map([](const std::string&) {});
}

Result<TrainingRun> Bench::train(const Case& one) const {
  std::vector<std::string> words = launched(one.strategy.devices(), trainer_);
  words.insert(words.end(), one.words.begin(), one.words.end());
  words.insert(words.end(), run_words_.begin(), run_words_.end());
  words.insert(words.end(), thread_words_.begin(), thread_words_.end());
  words.insert(words.end(), {"--log-every", "0", "--json"});
  return run_process(words).and_then([&](const std::string& json) { return parse_training_run(json, one.text); });
}

}  // namespace sibyl::cli
