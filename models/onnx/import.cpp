#include "models/onnx/import.h"

#include <fmt/format.h>

#include "models/canonical/canonical.h"
#include "models/onnx/batch.h"
#include "models/onnx/translate.h"
#include "models/untrained.h"

namespace sibyl {
namespace {

using namespace onnx_import;

constexpr std::int64_t oldest_opset = 7;
constexpr std::int64_t newest_opset = 25;  // whose operators were looked at

// The error a caller sees: for a node that only works at the baked-in batch, with what to do.
Error explained(const TranslationError& error, const Binding& binding) {
  if (!error.forbids_batch) return error.error;
  Error result = error.error;
  result.message =
      fmt::format("{} forbids another batch than {}: {}", error.op_type, binding.batches[0], error.error.message);
  result.hint = "export the model with a dynamic batch axis (torch.onnx.export's dynamic_axes or dynamic_shapes)";
  return result;
}

// At the batch the file was exported with, and as if nothing grew with it: what remains when a node forbids others.
Result<Translation> translate_as_baked(const ModelData& model, Binding binding, const TranslationError& problem) {
  const Error reason = explained(problem, binding);
  binding.wanted_side = 0;
  binding.batches[1] = binding.batches[0];
  for (InputShapes& input : binding.inputs) input.at[1] = input.at[0];
  Choices none;
  auto translation = translate(model, binding, none);
  if (!translation) return Failure(translation.error().error);
  translation->unsupported.insert(translation->unsupported.begin(), {reason.where, problem.op_type, reason.message});
  return std::move(*translation);
}

// With other guesses about the batch, while a node forbids it or the result is doubtful. A doubtful result is better
// than none; the error is the first one's: the likeliest guesses'.
tl::expected<Translation, TranslationError> translate_guessing(const ModelData& model, const Binding& binding) {
  constexpr int most_attempts = 200, most_doubts = 40;
  Choices choices;
  auto best = translate(model, binding, choices);
  if (!best && !best.error().forbids_batch) return best;
  for (int attempt = 1, doubts = 0; attempt < most_attempts && doubts < most_doubts; ++attempt) {
    if ((best && !best->doubtful) || is_true(binding.cancelled)) break;
    if (!choices.advance()) break;
    auto next = translate(model, binding, choices);
    doubts += best ? 1 : 0;
    if (next && (!best || !next->doubtful)) best = std::move(next);
  }
  return best;
}

// A model with an open batch is walked from a batch of 1, since exporters bake their example's 1 into constants that
// can be repaired; and from 2 where something is special about 1: a node forbids other batches, or cannot be used. What
// can be used then, but leaves the result doubtful (the first of two samples), is better not.
Result<Translation> translate_model(const ModelData& model, const ImportOptions& options) {
  std::optional<Translation> best;
  std::optional<Error> first;
  for (const std::int64_t reference : {1, 2}) {
    SIBYL_TRY(const Binding binding, bind_inputs(model, options, reference));
    auto translation = translate_guessing(model, binding);
    if (translation) {
      if (!best || (!translation->doubtful && translation->unsupported.size() < best->unsupported.size()))
        best = std::move(*translation);
      if (binding.baked || best->unsupported.empty()) break;
      continue;
    }
    if (binding.baked && translation.error().forbids_batch && !options.batch)
      return translate_as_baked(model, binding, translation.error());
    if (!first) first = explained(translation.error(), binding);
    if (binding.baked || !translation.error().forbids_batch) break;
  }
  if (best) return std::move(*best);
  return Failure(*first);
}

// What the model's metadata says (files of our zoo), where the caller leaves it open.
LossKind loss_of(const ModelData& model, LossKind wanted) {
  const auto stored = model.metadata.find("sibyl.loss");
  if (wanted != LossKind::automatic || stored == model.metadata.end()) return wanted;
  if (stored->second == "cross_entropy") return LossKind::cross_entropy;
  if (stored->second == "mean_squared_error") return LossKind::mean_squared_error;
  return wanted;
}

Result<Import> import_model(const ModelData& model, const std::string& name, const ImportOptions& options) {
  const auto opset = model.opsets.find("");
  if (opset == model.opsets.end()) return fail("the model names no opset of ONNX's own operators", name);
  if (opset->second < oldest_opset)
    return fail(fmt::format("opset {} is older than Sibyl reads ({})", opset->second, oldest_opset), name,
                "convert the model with onnx.version_converter");
  auto translated = translate_model(model, options);
  if (is_true(options.cancelled)) return interrupted();
  SIBYL_TRY(Translation translation, std::move(translated));
  if (opset->second > newest_opset)
    translation.graph.assumed.push_back(fmt::format(
        "opset {} is newer than Sibyl knows: operators mean what they meant in opset {}", opset->second, newest_opset));
  translation.graph.assumed.insert(translation.graph.assumed.end(), model.assumed.begin(), model.assumed.end());
  Import result{{}, std::move(translation.unsupported), translation.unseen, opset->second, model.producer};
  if (translation.graph.name.empty()) translation.graph.name = name;
  if (translation.graph.outputs.empty() && result.unsupported.empty())
    return fail("none of the model's outputs depends on its inputs", name);
  if (!result.unsupported.empty()) {
    // Enough to look at; a loss would need the parts that are missing.
    result.graph = std::move(translation.graph);
    return result;
  }
  SIBYL_TRY(Graph canonical, canonicalize(std::move(translation.graph), options.apart, options.cancelled));
  if (canonical.outputs.size() < 2) {
    SIBYL_TRY(result.graph, attach_loss(std::move(canonical), loss_of(model, options.loss)));
    return result;
  }
  SIBYL_TRY(result.graph, attach_loss(canonical, loss_of(model, options.loss)));
  result.graph.untrained = untrained_outputs(canonical, result.graph);
  return result;
}

}  // namespace

Result<Import> inspect_onnx_bytes(std::string_view bytes, const std::string& name, const ImportOptions& options) {
  SIBYL_TRY(const ModelData model, parse_model(bytes, name, options.cancelled));
  return import_model(model, name, options);
}

Result<Import> inspect_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  SIBYL_TRY(const ModelData model, read_model(path, options.cancelled));
  return import_model(model, path.filename().string(), options);
}

Result<std::vector<OpenDimension>> open_dimensions(const std::filesystem::path& path) {
  SIBYL_TRY(const ModelData model, read_model(path));
  return open_dimensions_of(model);
}

Result<std::vector<OpenDimension>> open_dimensions_of_bytes(std::string_view bytes, const std::string& name) {
  SIBYL_TRY(const ModelData model, parse_model(bytes, name));
  return open_dimensions_of(model);
}

Result<Graph> import_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  SIBYL_TRY(Import import, inspect_onnx(path, options));
  if (!import.unsupported.empty()) {
    const Unsupported& first = import.unsupported.front();
    return fail(fmt::format("{} is not supported: {}", first.op_type, first.reason), first.node,
                import.unsupported.size() == 1
                    ? ""
                    : fmt::format("and {} more; `sibyl inspect` lists them", import.unsupported.size() - 1));
  }
  return std::move(import.graph);
}

}  // namespace sibyl
