#include "calibration/program/cudnn_request.h"

#include <fmt/format.h>

#include "oracle/cli/options.h"

namespace sibyl {
namespace {

using cli::Arguments;
using cli::Command;

Command compute_command() {
  Command c;
  c.name = "compute";
  c.program = "sibyl-calibrate-cudnn compute";
  c.summary = "time kernels of a GPU through cuDNN, cuBLASLt and CUDA: those of models, or a sweep";
  c.examples = {
      {"sibyl calibrate compute --backend cudnn -o h200.json", "the device and a quick sweep over all families"},
      {"sibyl calibrate compute --backend cudnn --for zoo:resnet50 --batches 64 --precision bf16 -o h200.json",
       "exactly the kernels of this model"}};
  c.options = cli::concatenated(
      {{{.name = "--backend", .value = "NAME", .help = "what times kernels", .fallback = "cudnn", .choices = {"cudnn"}},
        {.name = "--output",
         .value = "FILE",
         .help = "the calibration to write or to add to",
         .fallback = "calibration.json",
         .letter = 'o'},
        {.name = "--gpu", .value = "N", .help = "which device, as CUDA counts them", .fallback = "0"},
        {.name = "--layout",
         .value = "NAME",
         .help = "of images in memory; nhwc is channels_last",
         .fallback = "nchw",
         .choices = {"nchw", "nhwc"}},
        {.name = "--engines",
         .value = "WHICH",
         .help = "heuristic: the engine that frameworks take by default; best: the fastest of all, as with "
                 "cudnn.benchmark, and fused updates",
         .fallback = "heuristic",
         .choices = {"heuristic", "best"}},
        {.name = "--dtypes", .value = "TYPE,...", .help = "of the sweep; default: all that the device multiplies in"},
        {.name = "--tolerance",
         .value = "X",
         .help = "error of interpolation above which the sweep is cut finer",
         .fallback = "0.15"},
        {.name = "--rounds", .value = "N", .help = "how often it is cut finer, at most", .fallback = "0"},
        {.name = "--facts", .help = "peak, bandwidth, memory, context and launches only, no kernels"},
        json_option()},
       kernel_options()});
  return c;
}

Result<std::vector<DType>> read_dtypes(const std::string& text) {
  std::vector<DType> types;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    const auto type = parse_dtype(name);
    if (!type)
      return fail(ErrorCode::usage, fmt::format("'{}' is no element type", name), "--dtypes",
                  "f32, tf32, f16, bf16, f8e4m3");
    types.push_back(*type);
    at = end + 1;
  }
  return types;
}

}  // namespace

Result<CudnnRequest> read_cudnn_request(const std::vector<std::string>& words) {
  CudnnRequest request;
  const Command command = compute_command();
  if (words.empty() || words.front() == "--help" || words.front() == "-h") {
    request.common.help = cli::help_text(command);
    return request;
  }
  if (words.front() != "compute")
    return fail(
        ErrorCode::usage, fmt::format("the cudnn backend measures compute only, not '{}'", words.front()), {},
        "`sibyl calibrate io`, without --backend, adds storage to the same file; a cluster file joins a network to it "
        "(network: FILE)");
  SIBYL_TRY(const Arguments arguments, Arguments::parse(command, std::span(words).subspan(1)));
  if (arguments.help()) {
    request.common.help = cli::help_text(command);
    return request;
  }
  request.common.compute = true;
  request.common.output = *arguments.text("--output");
  request.common.json = arguments.has("--json");
  request.common.wanted.backend = Backend::cuda;
  SIBYL_CHECK(read_kernel_options(arguments, 1, request.common));
  SIBYL_TRY(const auto gpu, arguments.integer("--gpu", 0, 1023));
  request.settings.device = static_cast<int>(*gpu);
  request.settings.layout = arguments.text("--layout") == "nhwc" ? cudnn::Layout::nhwc : cudnn::Layout::nchw;
  request.settings.best = arguments.text("--engines") == "best";
  if (const auto types = arguments.text("--dtypes")) {
    SIBYL_TRY(request.dtypes, read_dtypes(*types));
  }
  SIBYL_TRY(const auto tolerance, arguments.number("--tolerance"));
  request.tolerance = *tolerance;
  if (request.tolerance <= 0) return fail(ErrorCode::usage, "--tolerance must be above 0");
  SIBYL_TRY(const auto rounds, arguments.integer("--rounds", 0, 4));
  request.rounds = static_cast<int>(*rounds);
  request.facts_only = arguments.has("--facts");
  return request;
}

}  // namespace sibyl
