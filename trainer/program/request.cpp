#include "trainer/program/request.h"

#include <fmt/format.h>

#include <algorithm>

namespace sibyl::trainer {
namespace {

using cli::Arguments;
using cli::Command;

constexpr std::int64_t most_steps = 1'000'000'000;  // each is remembered

Command train_command() {
  Command c;
  c.name = "train";
  c.program = "sibyl-train";
  c.summary = "train a model by a plan on this machine, and measure steps, memory and bytes sent";
  c.operands = "MODEL";
  c.least_operands = c.most_operands = 1;
  c.examples = {{"sibyl train zoo:resnet18 --batch 8", "one process, synthetic data"},
                {"mpirun -np 2 sibyl train zoo:bert-mini --batch 4/device --optimizer adam --json", "two replicas"},
                {"sibyl train cnn.onnx --batch 32 --data digits --steps 300 --evaluate digits/test",
                 "data from npy files: a file for each input, and targets.npy"}};
  c.options = cli::concatenated(
      {{{.name = "--devices", .value = "N", .help = "ranks; as many as processes were started unless given"}},
       cli::strategy_options(),
       cli::model_options(),
       {{.name = "--steps", .value = "N", .help = "steps measured", .fallback = "20"},
        {.name = "--warmup", .value = "N", .help = "steps before them", .fallback = "3"},
        {.name = "--device",
         .value = "real|cuda[:N]|emulated[:FILE][,spread]",
         .help =
             "real: the processor; cuda: a GPU, where libtorch has CUDA; emulated: compute nothing, but take the times "
             "of FILE's device (a calibration or a cluster; "
             "calibration.json unless given); messages stay real. With spread, times vary as they did when measured",
         .fallback = "real"},
        {.name = "--threads", .value = "N", .help = "compute threads of each rank", .fallback = "1"},
        {.name = "--lr", .value = "RATE", .help = "learning rate; 0.01 unless given, 0.0001 on synthetic data"},
        {.name = "--seed", .value = "N", .help = "of weights, synthetic data and shuffling", .fallback = "1"},
        {.name = "--log-every", .value = "N", .help = "steps between lines of loss; 0: none", .fallback = "1"},
        {.name = "--data", .value = "FOLDER", .help = "npy files to train on; synthetic data unless given"},
        {.name = "--evaluate", .value = "FOLDER", .help = "npy files to classify after training"},
        {.name = "--offload-folder",
         .value = "FOLDER",
         .help =
             "where files of what is offloaded to storage are while training runs; a temporary folder unless given"},
        {.name = "--save-weights", .value = "FILE", .help = "write the trained weights as safetensors"},
        {.name = "--trace",
         .value = "FILE",
         .help = "write one more step as a timeline for Perfetto, as `sibyl trace`"},
        {.name = "--json", .help = "print JSON, in SI units"}}});
  c.notes =
      "MODEL is a path to an ONNX file or zoo:NAME. Computes in fp32 and bf16, on a GPU in tf32, too; an emulated "
      "device "
      "takes the times of any precision but fp8. What `sibyl predict` prices and no trainer here runs is refused: "
      "--attention, --compress, --converted-images, --converted-norms, --dropless, --fused-norms, --fused-pointwise, "
      "--fused-update, --overlap-tensor and --written-update; and --half-weights but on an emulated device. "
      "docs/trainer.md tells how it trains.";
  return c;
}

Result<void> read_device(const std::string& text, Request& request) {
  constexpr std::string_view emulated = "emulated", spread = ",spread", cuda = "cuda:";
  if (text == "real") return {};
  request.cuda = text == "cuda" || text.starts_with(cuda);
  if (text.starts_with(cuda)) {
    SIBYL_TRY(const std::int64_t number, cli::parse_integer(text.substr(cuda.size()), "--device cuda", 0, 1023));
    request.gpu = static_cast<int>(number);
  }
  if (request.cuda) return {};
  std::string device = text;
  const bool varies = device.ends_with(spread);
  if (varies) device.resize(device.size() - spread.size());
  const bool named =
      device.starts_with(emulated) && device.size() > emulated.size() + 1 && device[emulated.size()] == ':';
  if (device == emulated || named) {
    request.emulated = Emulation{named ? device.substr(emulated.size() + 1) : "calibration.json", varies};
    return {};
  }
  return fail(ErrorCode::usage, fmt::format("'{}' is no device", text), "--device",
              "real, cuda, cuda:N, emulated, emulated:FILE, or emulated:FILE,spread");
}

// Losses are not scaled; an emulated device computes none.
Result<void> check_precision(const Request& request) {
  const auto refused = [](std::string_view why) {
    return fail(ErrorCode::usage, std::string(why), "--precision", "`sibyl predict` prices it");
  };
  const Precision precision = request.strategy.precision;
  if (precision == Precision::fp8) return refused("the trainer has no numbers of one byte");
  if (request.emulated) return {};
  if (precision == Precision::fp16) return refused("the trainer does not scale losses, as fp16 needs; bf16 does not");
  if (precision == Precision::tf32 && !request.cuda) return refused("a processor has no tf32");
  return {};
}

// What predictions know and the trainer does not run.
Result<void> check_runnable(const Request& request) {
  const Strategy& strategy = request.strategy;
  const auto refused = [](std::string_view what, const char* option) {
    return fail(ErrorCode::usage, fmt::format("the trainer does not run {}", what), option,
                "`sibyl predict` prices it");
  };
  if (strategy.half_weights && !request.emulated)
    return refused("weights of two bytes, except on an emulated device", "--half-weights");
  if (strategy.half_weights && strategy.zero == 3)
    return refused("weights of two bytes that are gathered for use", "--half-weights");
  if (strategy.fp32_gradients && strategy.zero > 1)
    return refused("gradients wider than their weights that are summed by parts", "--fp32-gradients");
  if (strategy.overlap_tensor) return refused("exchanges beside products", "--overlap-tensor");
  if (strategy.dropless) return refused("experts without slots", "--dropless");
  if (strategy.fused_update) return refused("fused updates", "--fused-update");
  if (strategy.written_update) return refused("updates by operators", "--written-update");
  if (strategy.fused_norms) return refused("fused norms", "--fused-norms");
  if (strategy.fused_pointwise) return refused("fused elementwise operations", "--fused-pointwise");
  if (strategy.compression.kind != Compression::Kind::none) return refused("compressed gradients", "--compress");
  if (strategy.attention != AttentionLibrary::flash2)
    return refused("another library's attention than its own", "--attention");
  if (strategy.converted_images) return refused("conversions of images of its own", "--converted-images");
  if (strategy.converted_norms) return refused("conversions of images of its own", "--converted-norms");
  return {};
}

Result<TrainSettings> read_settings(const Arguments& arguments) {
  TrainSettings settings;
  SIBYL_TRY(const auto steps, arguments.integer("--steps", 1, most_steps));
  SIBYL_TRY(const auto warmup, arguments.integer("--warmup", 0, most_steps));
  SIBYL_TRY(const auto seed, arguments.integer("--seed", 0));
  SIBYL_TRY(const auto log_every, arguments.integer("--log-every", 0));
  SIBYL_TRY(const std::optional<double> rate, arguments.number("--lr"));
  if (rate && *rate < 0) return fail(ErrorCode::usage, fmt::format("--lr: {} is below 0", *rate));
  settings.steps = *steps;
  settings.warmup = *warmup;
  settings.seed = static_cast<std::uint64_t>(*seed);
  settings.log_every = *log_every;
  if (const auto folder = arguments.text("--data")) settings.data = *folder;
  // Noise cannot be learned, and larger steps soon lead to weights that are no numbers.
  settings.learning_rate = rate.value_or(settings.data ? 0.01 : 0.0001);
  if (const auto folder = arguments.text("--offload-folder")) settings.offload_folder = *folder;
  if (const auto folder = arguments.text("--evaluate")) settings.evaluate = *folder;
  if (const auto file = arguments.text("--save-weights")) settings.save_weights = *file;
  if (const auto file = arguments.text("--trace")) settings.trace = *file;
  return settings;
}

}  // namespace

Result<Request> read_request(const std::vector<std::string>& words, int processes) {
  Request request;
  const Command command = train_command();
  SIBYL_TRY(const Arguments arguments, Arguments::parse(command, words));
  if (arguments.help()) {
    request.help = cli::help_text(command);
    return request;
  }
  request.model = arguments.operands().front();
  SIBYL_TRY(const auto devices, arguments.integer("--devices", 1));
  if (devices && *devices != processes)
    return fail(ErrorCode::usage, fmt::format("--devices {}, but {} processes were started", *devices, processes), {},
                fmt::format("mpirun -np {} sibyl train …", *devices));
  SIBYL_TRY(request.strategy, cli::read_strategy(arguments, processes));
  SIBYL_TRY(request.import, cli::read_import_options(arguments));
  request.import.batch =
      std::max<std::int64_t>(1, request.strategy.global_batch / request.strategy.data / request.strategy.accumulation);
  SIBYL_TRY(const auto threads, arguments.integer("--threads", 1, cli::most_threads));
  request.threads = static_cast<int>(*threads);
  SIBYL_TRY(request.settings, read_settings(arguments));
  request.json = arguments.has("--json");
  SIBYL_CHECK(read_device(*arguments.text("--device"), request));
  SIBYL_CHECK(check_precision(request));
  SIBYL_CHECK(check_runnable(request));
  if (request.cuda && request.strategy.zero > 0)
    return fail(ErrorCode::usage, "sharded state is not trained on a GPU", "--zero");
  if (request.strategy.offloads() && request.cuda)
    return fail(ErrorCode::usage, "the trainer offloads from a processor's memory only", "--offload",
                "--device real or emulated; `sibyl predict` prices GPUs");
  if (!request.settings.offload_folder.empty() && (request.emulated || !request.strategy.offloads_to(Tier::nvme)))
    return fail(ErrorCode::usage, "--offload-folder has no effect where nothing is offloaded to nvme");
  if (request.cuda && request.settings.trace)
    return fail(ErrorCode::usage, "a GPU's step cannot be drawn: the host does not see its kernels end", "--trace");
  return request;
}

}  // namespace sibyl::trainer
