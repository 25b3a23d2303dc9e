#include "oracle/cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/files.h"
#include "models/zoo/zoo.h"
#include "netmodel/network.h"
#include "oracle/axes.h"

namespace sibyl::cli {
namespace {

constexpr std::string_view zoo_prefix = "zoo:";
constexpr std::int64_t most_samples = std::int64_t{1} << 38;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

Result<int> parse_device_count(std::string_view text) {
  SIBYL_TRY(const std::int64_t count, parse_integer(text, "--devices", 1, most_devices));
  return static_cast<int>(count);
}

// Of "1..64" the dots, of "1-64" the dash: where they begin and how many characters they are. None: there is no range.
std::optional<std::pair<std::size_t, std::size_t>> range_sign(std::string_view text) {
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) return std::pair(dots, std::size_t{2});
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  return std::pair(dash, std::size_t{1});
}

// "first..last" doubles, "first..last:step" adds.
Result<void> add_range(std::string_view text, std::vector<int>& counts) {
  const auto [dots, length] = *range_sign(text);
  const std::string_view tail = text.substr(dots + length);
  const std::size_t colon = tail.find(':');
  SIBYL_TRY(const int first, parse_device_count(text.substr(0, dots)));
  SIBYL_TRY(const int last, parse_device_count(tail.substr(0, colon)));
  if (last < first) return fail(ErrorCode::usage, fmt::format("--devices: {} runs backwards", text));
  int step = 0;  // doubling
  if (colon != std::string_view::npos) {
    SIBYL_TRY(step, parse_device_count(tail.substr(colon + 1)));
    if ((last - first) / step > 100'000)
      return fail(ErrorCode::usage, fmt::format("--devices: {} has too many counts", text));
  }
  for (std::int64_t n = first; n<last; n = step> 0 ? n + step : n * 2) counts.push_back(static_cast<int>(n));
  counts.push_back(last);
  return {};
}

Result<std::map<std::string, std::int64_t>> read_dims(const Arguments& arguments) {
  std::map<std::string, std::int64_t> dims;
  for (const std::string& text : arguments.all("--dim")) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos)
      return fail(ErrorCode::usage, fmt::format("--dim: '{}' is not NAME=SIZE", text), {},
                  "write it like --dim seq=1024");
    const std::string name = text.substr(0, equals);
    SIBYL_TRY(const std::int64_t size, parse_integer(std::string_view(text).substr(equals + 1), "--dim " + name, 1));
    if (!dims.emplace(name, size).second) return fail(ErrorCode::usage, fmt::format("--dim: {} is given twice", name));
  }
  return dims;
}

Result<std::string> load_zoo(const std::string& name) {
  std::vector<std::string> known;
  for (const ZooModel& model : zoo_models()) known.push_back(model.name);
  if (std::ranges::find(known, name) == known.end()) {
    const auto meant = nearest(name, known);
    return fail(fmt::format("there is no model '{}' in the zoo", name), {},
                meant ? fmt::format("did you mean zoo:{}?", *meant) : "`sibyl zoo` lists them");
  }
  return zoo_model_bytes(name);
}

Result<void> read_exchange(const Arguments& arguments, Strategy& strategy) {
  SIBYL_TRY(strategy.compression, parse_compression(arguments.text("--compress").value_or("none")));
  if (arguments.has("--no-overlap")) {
    strategy.exchange = GradientExchange::at_end;
    if (arguments.has("--bucket") && !strategy.has_buckets())
      return fail(ErrorCode::usage, "--bucket has no effect with --no-overlap", {}, "leave one of them out");
  }
  SIBYL_TRY(const auto bucket, arguments.bytes("--bucket"));
  if (!bucket) return {};
  if (bucket->value() < 1) return fail(ErrorCode::usage, "--bucket must be at least one byte");
  strategy.bucket = *bucket;
  // As DDP: its small first bucket is never larger than the others.
  strategy.first_bucket = std::min(strategy.first_bucket, strategy.bucket);
  return {};
}

Result<void> read_pipeline(const Arguments& arguments, Strategy& strategy) {
  for (const char* option : {"--schedule", "--stages"})
    if (strategy.pipeline == 1 && arguments.has(option))
      return fail(ErrorCode::usage, fmt::format("{} has no effect without a pipeline", option), {},
                  "give --parallel pipeline=N too");
  if (const auto schedule = arguments.text("--schedule")) SIBYL_CHECK(parse_schedule(*schedule, strategy));
  const auto stages = arguments.text("--stages");
  if (!stages) return {};
  for (const std::string_view name : split(*stages, ',')) strategy.stage_starts.emplace_back(name);
  if (static_cast<int>(strategy.stage_starts.size()) + 1 == strategy.stages()) return {};
  return fail(ErrorCode::usage,
              fmt::format("--stages names the beginnings of {} stages after the first, and there are {}",
                          strategy.stage_starts.size(), strategy.stages() - 1));
}

}  // namespace

Result<BatchSize> parse_batch(std::string_view text) {
  const std::size_t slash = text.find('/');
  const bool per_device = slash != std::string_view::npos;
  if (per_device && text.substr(slash) != "/device")
    return fail(ErrorCode::usage, fmt::format("--batch: '{}' is not N or N/device", text), {},
                "write --batch 512 for the whole step or --batch 64/device for each device");
  SIBYL_TRY(const std::int64_t samples, parse_integer(text.substr(0, slash), "--batch", 1, most_samples));
  return BatchSize{samples, per_device};
}

Result<std::vector<int>> parse_device_counts(std::string_view text) {
  std::vector<int> counts;
  for (const std::string_view part : split(text, ',')) {
    if (range_sign(part)) {
      SIBYL_CHECK(add_range(part, counts));
    } else {
      SIBYL_TRY(const int count, parse_device_count(part));
      counts.push_back(count);
    }
  }
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

Result<std::vector<std::int64_t>> parse_integer_list(std::string_view text, std::string_view option) {
  std::vector<std::int64_t> values;
  for (const std::string_view part : split(text, ',')) {
    SIBYL_TRY(const std::int64_t value, parse_integer(part, option, 1));
    values.push_back(value);
  }
  return values;
}

std::vector<Option> model_options() {
  return {{.name = "--dim",
           .value = "NAME=SIZE",
           .help = "bind a symbolic dimension of the model, as seq=1024",
           .repeatable = true},
          {.name = "--capacity-factor",
           .value = "F",
           .help = "an expert's slots over its even share of a sample's tokens; what finds no slot is dropped",
           .fallback = "1"},
          {.name = "--loss",
           .value = "KIND",
           .help = "the loss that training minimises",
           .fallback = "automatic",
           .choices = {"automatic", "cross-entropy", "mean-squared-error"}}};
}

namespace {

std::string usual_order() {
  std::string text;
  for (const MeshAxis axis : rank_order(Strategy{})) text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(axis));
  return text;
}

}  // namespace

std::vector<Option> strategy_options() {
  return {
      {.name = "--batch",
       .value = "N[/device]",
       .help = "samples of one step: over all devices, or of each",
       .fallback = "32/device"},
      {.name = "--parallel",
       .value = "AXIS=N",
       .help = "how the model is split: " + axis_choices("=N", "=HxW or DxHxW"),
       .fallback = {}},
      {.name = "--order",
       .value = "AXIS,…",
       .help = "axes from the one along which neighbouring ranks lie: " + usual_order() + " unless given"},
      {.name = "--split-until",
       .value = "NAME",
       .help = "the last operation that filter, channel and spatial split; they go as far as they can unless given"},
      {.name = "--micro-batches",
       .value = "N",
       .help = "parts of a device's batch that run one after the other, gradients summed",
       .fallback = "1",
       .alias = "--accumulation"},
      {.name = "--schedule",
       .value = "NAME",
       .help = "order of a pipeline's passes: gpipe, 1f1b, interleaved:V, zero-bubble; 1f1b unless given"},
      {.name = "--stages",
       .value = "NAME,…",
       .help = "operations that begin the pipeline's later stages; balanced unless given"},
      {.name = "--precision",
       .value = "TYPE",
       .help = "what kernels compute in",
       .fallback = "fp32",
       .choices = {"fp32", "tf32", "fp16", "bf16", "fp8"}},
      {.name = "--half-weights",
       .help = "weights are held in two bytes beside fp32 masters, as Megatron-LM and DeepSpeed hold them; else as "
               "torch.autocast"},
      {.name = "--fp32-gradients",
       .help =
           "--half-weights: gradients are summed over micro-batches and replicas in four bytes, as Megatron-LM does "
           "in bf16; else in two"},
      {.name = "--optimizer",
       .value = "NAME",
       .help = "what updates the weights",
       .fallback = "sgd",
       .choices = {"sgd", "momentum", "adam", "adamw", "lamb", "lars"}},
      {.name = "--zero",
       .value = "STAGE[:N]",
       .help = "replicas share optimizer state (1), gradients too (2), parameters too (3); all of them, or N "
               "neighbours at a time",
       .fallback = "0"},
      {.name = "--reduce-each",
       .help = "--zero 2 or 3: every micro-batch's gradients are reduced at once and ranks keep their parts alone, as "
               "FSDP without no_sync and DeepSpeed; else they are summed whole and reduced after the last"},
      {.name = "--backward-prefetch",
       .value = "WHEN",
       .help = "--zero 3: backward, blocks are gathered while the one before them runs (pre, as FSDP does unless told "
               "otherwise) or when it has run (post, as Composer; no other block lies beside it)",
       .fallback = "pre",
       .choices = {"pre", "post"}},
      {.name = "--offload",
       .value = "WHAT",
       .help = "what lies outside the device while nothing uses it: optimizer (its state), parameters (of --zero 3), "
               "activations (that recomputed blocks keep), in host memory; or in storage, as "
               "optimizer:nvme,activations:nvme"},
      {.name = "--recompute",
       .value = "WHAT",
       .help =
           "results computed again for backward instead of kept: none, selective, full, every:K, groups:K, or kinds "
           "of operations",
       .fallback = "none"},
      {.name = "--clip", .value = "NORM", .help = "scale gradients down to this norm over all parameters"},
      {.name = "--batch-norm",
       .value = "OVER",
       .help = "samples whose statistics batch-norm takes: each replica's own, or all of them",
       .fallback = "replica",
       .choices = {"replica", "synchronised"}},
      {.name = "--context-exchange",
       .value = "WHAT",
       .help =
           "context=N: what ranks give each other around attention, their tokens of the others' heads (all-to-all, as "
           "DeepSpeed-Ulysses) or their keys and values (all-gather, as Llama 3's training; ring: passed on while "
           "attention computes); automatic: heads where they can be shared evenly, else keys",
       .fallback = "automatic",
       .choices = {"automatic", "heads", "keys", "ring"}},
      {.name = "--overlap-tensor",
       .help = "sequence=N: gathers and sums between operations go on beside the products they feed or come from, as "
               "Transformer Engine's user buffers and asynchronous tensor parallelism do it"},
      {.name = "--dropless",
       .help = "expert=N: without slots, as MegaBlocks: the busiest rank's experts get --capacity-factor times their "
               "share of tokens, and nothing empty is sent"},
      {.name = "--whole-experts",
       .help = "tensor=N: experts are dealt out over these ranks, too, and none is cut (Megatron-Core's expert tensor "
               "parallelism of 1)"},
      {.name = "--fused-update",
       .help = "on GPUs the optimizer's update is one kernel (apex, Megatron-LM, torch.optim's fused=True); else a "
               "kernel for each step of its formula, as torch.optim runs it"},
      {.name = "--written-update",
       .help = "on GPUs the optimizer's update is a kernel for each operator that it is written in, each with a result "
               "of its own (TensorFlow 1's BERT, BertAdam)"},
      {.name = "--fused-norms", .help = "additions and ReLUs behind a batch-norm run in its kernel"},
      {.name = "--fused-pointwise",
       .help = "elementwise operations in a row run in one kernel, as torch.compile and XLA make them"},
      {.name = "--converted-images",
       .help = "images lie channels first, and are transposed for 16-bit convolutions on tensor cores"},
      {.name = "--converted-norms",
       .help = "images lie channels last, and are transposed for batch-norms, as TensorFlow and PaddlePaddle do unless "
               "cuDNN's persistent kernels are asked for"},
      {.name = "--attention",
       .value = "LIBRARY",
       .help = "whose kernels fused attention runs, where the device knows several (Hopper): PyTorch's choice unless "
               "given, Transformer Engine's is cudnn; what the calibration timed",
       .fallback = "flash2",
       .choices = attention_library_names()},
      {.name = "--bucket",
       .value = "SIZE",
       .help = "gradients are exchanged in buckets of this size, 25MiB unless given"},
      {.name = "--no-overlap", .help = "exchange gradients in one message after backward"},
      {.name = "--compress",
       .value = "FORM",
       .help = "what gradients travel between replicas as: fp16, bf16, 1bit, 2bit, or topk:SHARE of their values",
       .fallback = "none"},
  };
}

std::vector<Option> output_options() {
  return {{.name = "--json", .help = "print JSON, in SI units"},
          {.name = "--color",
           .value = "WHEN",
           .help = "colour the text",
           .fallback = "auto",
           .choices = {"auto", "always", "never"}}};
}

std::vector<Option> concatenated(std::vector<std::vector<Option>> groups) {
  std::vector<Option> all;
  for (std::vector<Option>& group : groups) std::ranges::move(group, std::back_inserter(all));
  return all;
}

std::vector<std::string> given_words(const Arguments& arguments, const std::vector<Option>& options) {
  std::vector<std::string> words;
  for (const Option& option : options)
    for (const std::string& value : arguments.all(option.name))
      words.push_back(option.value.empty() ? option.name : option.name + "=" + value);
  return words;
}

Result<ImportOptions> read_import_options(const Arguments& arguments) {
  ImportOptions options;
  SIBYL_TRY(options.dims, read_dims(arguments));
  SIBYL_TRY(const auto factor, arguments.number("--capacity-factor"));
  if (factor && *factor <= 0) return fail(ErrorCode::usage, "--capacity-factor must be above 0");
  options.capacity_factor = factor.value_or(1.0);
  const std::string loss = arguments.text("--loss").value_or("automatic");
  if (loss == "cross-entropy") options.loss = LossKind::cross_entropy;
  if (loss == "mean-squared-error") options.loss = LossKind::mean_squared_error;
  return options;
}

Result<Strategy> read_splitting(const Arguments& arguments, std::optional<int> devices) {
  Strategy strategy;
  if (const auto parallel = arguments.text("--parallel")) {
    SIBYL_CHECK(parse_parallel(*parallel, strategy));
    const int replica = strategy.devices_per_replica();  // what is left of the devices makes replicas
    if (devices && parallel->find("data=") == std::string::npos && *devices % replica == 0)
      strategy.data = *devices / replica;
    if (devices && strategy.devices() != *devices)
      return fail(ErrorCode::usage, fmt::format("--parallel {} uses {} devices, but --devices says {}", *parallel,
                                                strategy.devices(), *devices));
  } else if (devices) {
    strategy.data = *devices;
  }
  if (const auto order = arguments.text("--order")) SIBYL_CHECK(parse_order(*order, strategy));
  strategy.split_until = arguments.text("--split-until").value_or("");
  SIBYL_TRY(const BatchSize batch, parse_batch(arguments.text("--batch").value_or("32/device")));
  strategy.global_batch = batch.global(strategy.devices());
  SIBYL_TRY(const auto micro_batches, arguments.integer("--micro-batches", 1, most_micro_batches));
  strategy.accumulation = micro_batches.value_or(1);
  SIBYL_CHECK(read_pipeline(arguments, strategy));
  if (const auto precision = arguments.text("--precision")) {
    SIBYL_TRY(strategy.precision, parse_precision(*precision));
  }
  strategy.half_weights = arguments.has("--half-weights");
  if (strategy.half_weights && (strategy.precision == Precision::fp32 || strategy.precision == Precision::tf32))
    return fail(ErrorCode::usage, fmt::format("{} has no weights of two bytes", to_string(strategy.precision)),
                "--half-weights", "--precision bf16, fp16 or fp8");
  strategy.fp32_gradients = arguments.has("--fp32-gradients");
  if (strategy.fp32_gradients && !strategy.half_weights)
    return fail(ErrorCode::usage, "weights of four bytes have gradients of four in any case", "--fp32-gradients",
                "give --half-weights, too, or leave it out");
  SIBYL_CHECK(parse_zero(arguments.text("--zero").value_or("0"), strategy));
  strategy.reduce_each = arguments.has("--reduce-each");
  strategy.gather_late = arguments.text("--backward-prefetch").value_or("pre") == "post";
  if (const auto offload = arguments.text("--offload")) SIBYL_CHECK(parse_offload(*offload, strategy));
  if (const auto recompute = arguments.text("--recompute")) {
    SIBYL_CHECK(parse_recompute(*recompute, strategy));
  }
  if (const auto batch_norm = arguments.text("--batch-norm")) {
    SIBYL_TRY(strategy.batch_norm, parse_batch_norm(*batch_norm));
  }
  if (const auto exchange = arguments.text("--context-exchange")) {
    SIBYL_TRY(strategy.context_exchange, parse_context_exchange(*exchange));
  }
  strategy.fused_norms = arguments.has("--fused-norms");
  strategy.fused_update = arguments.has("--fused-update");
  strategy.written_update = arguments.has("--written-update");
  if (strategy.fused_update && strategy.written_update)
    return fail(ErrorCode::usage, "an update is one kernel or many", "--written-update", "leave out one of the two");
  strategy.fused_pointwise = arguments.has("--fused-pointwise");
  strategy.overlap_tensor = arguments.has("--overlap-tensor");
  strategy.dropless = arguments.has("--dropless");
  strategy.whole_experts = arguments.has("--whole-experts");
  strategy.converted_images = arguments.has("--converted-images");
  strategy.converted_norms = arguments.has("--converted-norms");
  if (strategy.converted_images && strategy.converted_norms)
    return fail(ErrorCode::usage, "images lie channels first or last", "--converted-norms", "leave out one of the two");
  if (const auto attention = arguments.text("--attention")) {
    SIBYL_TRY(strategy.attention, parse_attention_library(*attention));
  }
  SIBYL_TRY(const auto clip, arguments.number("--clip"));
  if (clip && *clip <= 0) return fail(ErrorCode::usage, "--clip must be above 0");
  strategy.clip = clip.value_or(0.0);
  SIBYL_CHECK(read_exchange(arguments, strategy));
  return strategy;
}

Result<Strategy> read_strategy(const Arguments& arguments, std::optional<int> devices) {
  SIBYL_TRY(Strategy strategy, read_splitting(arguments, devices));
  if (const auto optimizer = arguments.text("--optimizer")) {
    SIBYL_TRY(strategy.optimizer, parse_optimizer(*optimizer));
  }
  return strategy;
}

std::string model_name(const std::string& model) { return model == "-" ? "standard input" : model; }

Result<Import> load_import(const std::string& model, const ImportOptions& options) {
  if (model.starts_with(zoo_prefix)) {
    SIBYL_TRY(const std::string bytes, load_zoo(model.substr(zoo_prefix.size())));
    return inspect_onnx_bytes(bytes, model, options);
  }
  if (model != "-") return inspect_onnx(model, options);
  SIBYL_TRY(const std::string bytes, read_standard_input());
  return inspect_onnx_bytes(bytes, model_name(model), options);
}

Result<Graph> load_graph(const std::string& model, const ImportOptions& options) {
  SIBYL_TRY(Import import, load_import(model, options));
  if (!import.unsupported.empty()) {
    const Unsupported& first = import.unsupported.front();
    const std::size_t others = import.unsupported.size() - 1;
    return fail(fmt::format("{} cannot be priced: {}{}", first.op_type, first.reason,
                            others > 0 ? fmt::format("; {} more cannot be priced", others) : ""),
                first.node, fmt::format("`sibyl inspect {}` lists every such node", model));
  }
  return std::move(import.graph);
}

Result<std::vector<OpenDimension>> load_dimensions(const std::string& model) {
  if (!model.starts_with(zoo_prefix)) return open_dimensions(model);
  SIBYL_TRY(const std::string bytes, load_zoo(model.substr(zoo_prefix.size())));
  return open_dimensions_of_bytes(bytes, model);
}

}  // namespace sibyl::cli
