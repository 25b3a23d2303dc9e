#include "calibration/program/commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/cli/options.h"

namespace sibyl {
namespace {

using cli::Arguments;
using cli::Command;
using cli::Option;

struct Verb {
  std::string name, summary;
  bool compute, network, overlap, io;
};

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all{
      {"compute", "time kernels: those of models, or a sweep over common shapes", true, false, false, false},
      {"network", "measure messages and collectives between the ranks", false, true, false, false},
      {"overlap", "measure how computing and communicating slow each other", false, false, true, false},
      {"io", "measure storage: write and read", false, false, false, true},
      {"all", "all of these", true, true, true, true},
  };
  return all;
}

// How the model will be split: all that is said of a strategy, but what is a list here.
std::vector<Option> splitting_options() {
  std::vector<Option> options = cli::strategy_options();
  std::erase_if(options, [](const Option& o) { return o.name == "--batch" || o.name == "--optimizer"; });
  for (Option& option : options)
    if (option.name == "--parallel") option.help += "; over all ranks unless given";
  return options;
}

Option cache_option() {
  return {.name = "--cache",
          .value = "SIZE",
          .help =
              "a processor's last-level cache: kernels find their operands outside it, and those that fit are timed "
              "inside it, too; found by reading unless given (a "
              "GPU tells its own), which takes twice its size of each rank's memory"};
}

Result<void> read_cache(const Arguments& arguments, Request& request) {
  SIBYL_TRY(const std::optional<Bytes> cache, arguments.bytes("--cache"));
  request.cache = cache.value_or(Bytes{});
  return {};
}

// The time of what is measured is --budget, which is the kernels' where both are.
std::string budget_of_network(const Verb& verb) { return verb.compute ? "--network-budget" : "--budget"; }

std::vector<Option> options_of(const Verb& verb) {
  std::vector<std::vector<Option>> groups;
  groups.push_back({{.name = "--output",
                     .value = "FILE",
                     .help = "the calibration to write or to add to",
                     .fallback = "calibration.json",
                     .letter = 'o'},
                    {.name = "--threads", .value = "N", .help = "compute threads of each rank", .fallback = "1"},
                    json_option()});
  groups.push_back(verb.compute ? kernel_options() : std::vector{cache_option()});
  if (verb.compute)
    groups.push_back({{.name = "--backend",
                       .value = "NAME",
                       .help = "what times kernels; cudnn is sibyl-calibrate-cudnn, which `sibyl calibrate` starts",
                       .fallback = "torch",
                       .choices = {"torch"}},
                      {.name = "--device",
                       .value = "cpu|cuda[:N]",
                       .help = "what computes; cuda where libtorch has it, each process of a node on its own GPU",
                       .fallback = "cpu"}});
  if (verb.network)
    groups.push_back(
        {{.name = budget_of_network(verb),
          .value = "TIME",
          .help = "the most time for the network",
          .fallback = "120 s"},
         {.name = "--network-samples",
          .value = "N",
          .help =
              "time a message once unless the file has N samples of it: run again later, this shows how the network "
              "drifts; three, at three moments of the budget, unless given"},
         {.name = "--between-messages",
          .value = "WHAT",
          .help = "what ranks do between two messages: compute as in training, or sleep as emulated ranks do; auto: "
                  "compute, unless ranks share processors",
          .fallback = "auto",
          .choices = {"auto", "compute", "sleep"}}});
  if (verb.io)
    groups.push_back({{.name = "--directory", .value = "FOLDER", .help = "whose storage; default: the output's folder"},
                      {.name = "--size", .value = "BYTES", .help = "of the largest file", .fallback = "256MiB"}});
  return cli::concatenated(std::move(groups));
}

Command command_of(const Verb& verb) {
  Command command;
  command.name = verb.name;
  command.program = "sibyl-calibrate " + verb.name;
  command.summary = verb.summary;
  command.examples = {{fmt::format("mpirun -np 2 sibyl-calibrate {} -o machine.json", verb.name), verb.summary}};
  if (verb.compute)
    command.examples.push_back(
        {fmt::format("mpirun -np 2 sibyl-calibrate {} --for zoo:resnet50 --batches 8", verb.name),
         "exactly the kernels that this training runs"});
  command.options = options_of(verb);
  return command;
}

std::string general_help() {
  std::string text = "sibyl-calibrate VERB [options]: measures this machine into a calibration file\n\n";
  for (const Verb& verb : verbs()) text += fmt::format("  {:<9} {}\n", verb.name, verb.summary);
  return text +
         "\nRun it alone, or under mpirun or srun with as many ranks a node as training will have.\n"
         "Killed, it goes on where it was when run again. `sibyl-calibrate VERB --help` tells more.\n";
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Result<void> read_device(const std::string& text, Request& request) {
  constexpr std::string_view cuda = "cuda:";
  if (text == "cpu") return {};
  if (text.starts_with(cuda)) {
    SIBYL_TRY(const std::int64_t number, cli::parse_integer(text.substr(cuda.size()), "--device cuda", 0, 1023));
    request.gpu = static_cast<int>(number);
  } else if (text != "cuda") {
    return fail(ErrorCode::usage, fmt::format("'{}' is no device", text), "--device", "cpu, cuda, or cuda:N");
  }
  request.cuda = true;
  request.wanted.backend = Backend::cuda;
  return {};
}

}  // namespace

Option json_option() { return {.name = "--json", .help = "print what was measured as JSON, in SI units"}; }

std::vector<Option> kernel_options() {
  std::vector<Option> own{
      {.name = "--for",
       .value = "MODEL",
       .help = "an ONNX file or zoo:NAME whose kernels are timed",
       .repeatable = true},
      {.name = "--batches", .value = "N,N,...", .help = "samples of a replica's micro-batch", .fallback = "1,8,32"},
      {.name = "--optimizer", .value = "NAME,...", .help = "whose updates are timed", .fallback = "sgd"},
      {.name = "--sweep",
       .value = "SIZE",
       .help = "without --for: how many shapes",
       .fallback = "quick",
       .choices = {"quick", "full"}},
      {.name = "--budget",
       .value = "TIME",
       .help = "stop timing kernels after so long, once those at hand have run five times; default: when all are done"},
      {.name = "--kernel-budget",
       .value = "TIME",
       .help = "the most time for a kernel, in the mean of those that take turns",
       .fallback = "0.1 s"},
      cache_option(),
      {.name = "--samples",
       .value = "N",
       .help = "time a kernel once more unless the file has N samples of it: run again later, this shows how the "
               "machine drifts, and predictions take the mean",
       .fallback = "1"},
      {.name = "--known-to",
       .value = "SHARE",
       .help =
           "with samples of several runs: time those of 2 ms and longer once more whose mean is known no better than "
           "to this share of it, as 0.05"}};
  return cli::concatenated({std::move(own), splitting_options(), cli::model_options()});
}

Result<void> read_kernel_options(const Arguments& arguments, int ranks, Request& request) {
  Wanted& wanted = request.wanted;
  wanted.models = arguments.all("--for");
  SIBYL_TRY(wanted.import, cli::read_import_options(arguments));
  SIBYL_TRY(wanted.batches, cli::parse_integer_list(*arguments.text("--batches"), "--batches"));
  const std::optional<int> devices = arguments.has("--parallel") ? std::nullopt : std::optional(ranks);
  SIBYL_TRY(wanted.strategy, cli::read_splitting(arguments, devices));
  for (const std::string& name : words_of(*arguments.text("--optimizer"))) {
    SIBYL_TRY(const OptimizerKind kind, parse_optimizer(name));
    wanted.optimizers.push_back(kind);
  }
  if (arguments.text("--sweep") == "full") request.sweep_size = SweepSize::full;
  SIBYL_TRY(request.limit, arguments.seconds("--budget"));
  SIBYL_TRY(const std::optional<Seconds> kernel_budget, arguments.seconds("--kernel-budget"));
  request.kernel_budget = *kernel_budget;
  SIBYL_CHECK(read_cache(arguments, request));
  SIBYL_TRY(const auto samples, arguments.integer("--samples", 1));
  request.repeated.samples = static_cast<int>(*samples);
  SIBYL_TRY(request.repeated.known_to, arguments.number("--known-to"));
  if (request.repeated.known_to && !(*request.repeated.known_to > 0))
    return fail(ErrorCode::usage, "it is a share above 0, as 0.05", "--known-to");
  return {};
}

Result<Request> read_request(const std::vector<std::string>& words, int ranks) {
  Request request;
  if (words.empty()) return fail(ErrorCode::usage, "which measurement: compute, network, overlap, io or all?");
  if (words.front() == "--help" || words.front() == "-h") {
    request.help = general_help();
    return request;
  }
  const auto verb =
      std::find_if(verbs().begin(), verbs().end(), [&](const Verb& v) { return v.name == words.front(); });
  if (verb == verbs().end())
    return fail(ErrorCode::usage, fmt::format("there is no measurement '{}'", words.front()), {},
                "there are compute, network, overlap, io, all");
  const Command command = command_of(*verb);
  SIBYL_TRY(const Arguments arguments, Arguments::parse(command, std::span(words).subspan(1)));
  if (arguments.help()) {
    request.help = cli::help_text(command);
    return request;
  }
  request.compute = verb->compute, request.network = verb->network;
  request.overlap = verb->overlap, request.io = verb->io;
  request.output = *arguments.text("--output");
  request.json = arguments.has("--json");
  SIBYL_TRY(const std::optional<std::int64_t> threads, arguments.integer("--threads", 1, cli::most_threads));
  request.threads = static_cast<int>(*threads);
  if (!verb->compute) SIBYL_CHECK(read_cache(arguments, request));
  if (verb->compute) {
    SIBYL_CHECK(read_device(*arguments.text("--device"), request));
    SIBYL_CHECK(read_kernel_options(arguments, ranks, request));
  }
  if (verb->network) {
    SIBYL_TRY(const std::optional<Seconds> budget, arguments.seconds(budget_of_network(*verb)));
    SIBYL_TRY(const auto samples, arguments.integer("--network-samples", 1));
    request.of_network.budget = *budget;
    if (samples) request.of_network.samples = static_cast<int>(*samples);
    const auto between = arguments.text("--between-messages");
    if (between != "auto") request.of_network.ranks_sleep = between == "sleep";
  }
  if (verb->io) {
    SIBYL_TRY(const std::optional<Bytes> size, arguments.bytes("--size"));
    request.io_size = *size;
    const auto folder = arguments.text("--directory");
    request.io_folder =
        folder ? std::filesystem::path(*folder) : std::filesystem::absolute(request.output).parent_path();
  }
  return request;
}

}  // namespace sibyl
