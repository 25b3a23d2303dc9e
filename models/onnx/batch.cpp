#include "models/onnx/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

namespace sibyl::onnx_import {
namespace {

std::string symbol_of(const ValueData& input, std::size_t axis) {
  const Dimension& dimension = (*input.shape)[axis];
  if (dimension.value) return {};
  return dimension.symbol.empty() ? fmt::format("{}.{}", input.name, axis) : dimension.symbol;
}

bool names_batch(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return name.find("batch") != std::string::npos || name == "n" || name == "b" || name == "bs";
}

Result<std::vector<const ValueData*>> fed_inputs(const ModelData& model) {
  std::set<std::string_view> initializers;
  for (const TensorData& tensor : model.graph.initializers) initializers.insert(tensor.name);
  std::vector<const ValueData*> inputs;
  for (const ValueData& input : model.graph.inputs) {
    if (initializers.contains(input.name)) continue;
    if (!input.dtype) return fail("the input is not a tensor of numbers", input.name);
    if (!input.shape)
      return fail("the input has no shape", input.name, "export the model with the shapes of its inputs");
    inputs.push_back(&input);
  }
  return inputs;
}

// What the batch is called, or the number that is baked in.
struct Batch {
  std::set<std::string> symbols;
  std::optional<std::int64_t> baked;
};

Batch find_batch(const std::vector<const ValueData*>& inputs, const ImportOptions& options) {
  Batch batch;
  std::set<std::string> elsewhere;  // symbols at other axes than 0
  for (const ValueData* input : inputs)
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
      const std::string symbol = symbol_of(*input, axis);
      if (axis > 0) elsewhere.insert(symbol);
      if (!symbol.empty() && names_batch(symbol) && batch.symbols.empty()) batch.symbols.insert(symbol);
    }
  const bool named = !batch.symbols.empty();
  for (const ValueData* input : inputs) {
    if (input->shape->empty()) continue;
    const std::string symbol = symbol_of(*input, 0);
    const bool first = batch.symbols.empty() && !batch.baked;
    if (symbol.empty()) {
      if (first) batch.baked = (*input->shape)[0].value;
    } else if (!options.dims.contains(symbol) && (first || (!batch.baked && !elsewhere.contains(symbol)))) {
      if (!named || names_batch(symbol) || !elsewhere.contains(symbol)) batch.symbols.insert(symbol);
    }
  }
  return batch;
}

// What the model's metadata say of it.
Result<std::optional<std::int64_t>> stored_extent(const ModelData& model, const std::string& symbol,
                                                  const std::string& input) {
  const auto stored = model.metadata.find("sibyl.dim." + symbol);
  if (stored == model.metadata.end()) return std::optional<std::int64_t>();
  std::int64_t value = 0;
  const char* end = stored->second.data() + stored->second.size();
  const auto [stop, error] = std::from_chars(stored->second.data(), end, value);
  if (error == std::errc() && stop == end) return std::optional(value);
  return fail(fmt::format("the model's metadata {} holds '{}', not a number", stored->first, stored->second), input);
}

Result<std::int64_t> bound_extent(const ModelData& model, const ImportOptions& options, const std::string& symbol,
                                  const std::string& input) {
  if (const auto given = options.dims.find(symbol); given != options.dims.end()) return given->second;
  SIBYL_TRY(const auto stored, stored_extent(model, symbol, input));
  if (stored) return *stored;
  return fail(fmt::format("the dimension '{}' has no value", symbol), input,
              fmt::format("give it one with --dim {}=VALUE", symbol));
}

Result<void> check_options(const std::vector<const ValueData*>& inputs, const ImportOptions& options) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (options.batch && (*options.batch < 1 || *options.batch > most))
    return fail(ErrorCode::usage, fmt::format("a batch of {} cannot be trained", *options.batch), "--batch");
  std::set<std::string> symbols;
  for (const ValueData* input : inputs)
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) symbols.insert(symbol_of(*input, axis));
  symbols.erase("");
  for (const auto& [name, value] : options.dims) {
    if (value < 1 || value > most)
      return fail(ErrorCode::usage, fmt::format("dimension {} cannot be {}", name, value), "--dim");
    if (!symbols.contains(name))
      return fail(
          ErrorCode::usage, fmt::format("the model has no dimension called '{}'", name), "--dim",
          symbols.empty() ? "all its dimensions are numbers" : fmt::format("it has: {}", fmt::join(symbols, ", ")));
  }
  return {};
}

void choose_batches(Binding& binding, const Batch& batch, const ImportOptions& options, std::int64_t reference) {
  binding.baked = batch.baked.has_value();
  binding.batches[0] = batch.baked.value_or(reference);
  std::int64_t wanted = options.batch.value_or(batch.baked.value_or(1));
  for (const std::string& symbol : batch.symbols)
    if (const auto given = options.dims.find(symbol); given != options.dims.end() && !options.batch)
      wanted = given->second;
  binding.wanted_side = wanted == binding.batches[0] ? 0 : 1;
  binding.batches[1] = binding.wanted_side == 1 ? wanted : 2 * wanted;
}

}  // namespace

Result<Binding> bind_inputs(const ModelData& model, const ImportOptions& options, std::int64_t reference) {
  SIBYL_TRY(const auto inputs, fed_inputs(model));
  SIBYL_CHECK(check_options(inputs, options));
  const Batch batch = find_batch(inputs, options);
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (batch.baked && (*batch.baked < 1 || *batch.baked > most))
    return fail(fmt::format("the batch in the file is {}", *batch.baked), inputs.front()->name);
  Binding binding;
  binding.capacity_factor = options.capacity_factor;
  binding.cancelled = options.cancelled;
  choose_batches(binding, batch, options, reference);
  for (const ValueData* input : inputs) {
    InputShapes shapes{input, {}};
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
      const std::string symbol = symbol_of(*input, axis);
      const auto& value = (*input->shape)[axis].value;
      const bool grows =
          symbol.empty() ? axis == 0 && batch.baked && *value == *batch.baked : batch.symbols.contains(symbol);
      std::int64_t extent = value.value_or(0);
      if (!symbol.empty() && !grows) {
        SIBYL_TRY(extent, bound_extent(model, options, symbol, input->name));
      }
      for (std::size_t side = 0; side < 2; ++side) shapes.at[side].push_back(grows ? binding.batches[side] : extent);
    }
    for (const Shape& shape : shapes.at)
      if (!is_sane(shape))
        return fail("the input's shape [" + to_string(shape) + "] has a negative extent or more than 2^62 elements",
                    input->name);
    binding.inputs.push_back(std::move(shapes));
  }
  return binding;
}

Result<std::vector<OpenDimension>> open_dimensions_of(const ModelData& model) {
  SIBYL_TRY(const auto inputs, fed_inputs(model));
  const Batch batch = find_batch(inputs, {});
  std::map<std::string, std::optional<std::int64_t>> found;
  for (const ValueData* input : inputs)
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
      const std::string symbol = symbol_of(*input, axis);
      if (symbol.empty() || batch.symbols.contains(symbol) || found.contains(symbol)) continue;
      SIBYL_TRY(found[symbol], stored_extent(model, symbol, input->name));
    }
  std::vector<OpenDimension> dimensions;
  for (const auto& [name, size] : found) dimensions.push_back({name, size});
  return dimensions;
}

}  // namespace sibyl::onnx_import
