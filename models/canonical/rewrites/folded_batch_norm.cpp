// A batch-norm is an affine map once it stops learning, so exports for inference multiply it into the convolution
// before it: the file has a scaled weight and a bias instead. Values do not show it. Names do, since whoever folds has
// to name what it made:
//
// - torch.onnx (TorchScript): "onnx::Conv_497" and "onnx::Conv_498", before PyTorch 1.12 "497" and "498". What is not
//   folded keeps its module's name, "features.0.bias".
// - torch.onnx (dynamo) and onnxscript: "conv1.weight" and "conv1.weight_bias"; in 2025 the input's name and "_bias".
// - tf2onnx: "NODE_weights_fused_bn" and "NODE_bias_fused_bn".
//
// A bias that the layer had before went into the shift. Whether it had one cannot be seen; before a batch-norm it is of
// no use, and most have none.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_named_by_torch(std::string_view name, bool numbers_are) {
  constexpr std::string_view prefix = "onnx::Conv_";
  if (name.starts_with(prefix)) return is_number(name.substr(prefix.size()));
  return numbers_are && is_number(name);
}

bool is_sum_of(std::string_view name, std::string_view stem, std::string_view tail) {
  return name.size() == stem.size() + tail.size() && name.starts_with(stem) && name.ends_with(tail);
}

// Files in which every parameter is a number (PyTorch before 1.2) tell nothing by numbers.
bool keeps_names(const Editor& editor) {
  for (std::size_t t = 0; t < editor.tensor_count(); ++t)
    if (editor[TensorId{t}].kind == TensorKind::parameter && !is_number(editor[TensorId{t}].name)) return true;
  return false;
}

bool holds_a_batch_norm(const Editor& editor, const Operation& op, bool numbers_tell) {
  const std::string &x = editor[op.inputs[0]].name, &weight = editor[op.inputs[1]].name,
                    &bias = editor[op.inputs[2]].name;
  const bool by_module = weight.ends_with("weight");
  if (by_module && (is_sum_of(bias, weight, "_bias") || is_sum_of(bias, x, "_bias"))) return true;
  if (weight.ends_with("_weights_fused_bn") && bias.ends_with("_bias_fused_bn")) return true;
  const auto* convolution = std::get_if<Convolution>(&op.attributes);
  return convolution && !convolution->transposed && is_named_by_torch(weight, numbers_tell) &&
         is_named_by_torch(bias, numbers_tell);
}

// The parameters of a layer with a bias and channels on axis 1, as batch-norm takes them.
bool has_channels(const Editor& editor, const Operation& op) {
  if (!std::holds_alternative<Convolution>(op.attributes) && !std::holds_alternative<Linear>(op.attributes))
    return false;
  if (op.inputs.size() < 3 || !op.inputs[2].valid()) return false;
  const Tensor &weight = editor[op.inputs[1]], &bias = editor[op.inputs[2]], &y = editor[op.outputs[0]];
  const bool of_images = std::holds_alternative<Convolution>(op.attributes) || y.shape.size() == 2;
  return weight.kind == TensorKind::parameter && bias.kind == TensorKind::parameter && of_images &&
         y.shape.size() >= 2 && bias.shape == Shape{y.shape[1]};
}

void unfold(Editor& editor, OperationId layer) {
  const Operation op = editor[layer];
  const TensorId shift = op.inputs[2];
  const auto like_shift = [&](TensorKind kind, std::string_view role) {
    Tensor t = editor[shift];
    t.name += role;
    t.kind = kind;
    return editor.add(std::move(t));
  };
  const TensorId scale = like_shift(TensorKind::parameter, "/scale");
  const TensorId mean = like_shift(TensorKind::buffer, "/running_mean");
  const TensorId variance = like_shift(TensorKind::buffer, "/running_variance");
  Tensor y = editor[op.outputs[0]];
  y.name += "/before_batch_norm";
  const TensorId before = editor.add(std::move(y));
  editor.insert_before(layer, Operation{op.name, op.attributes, {op.inputs[0], op.inputs[1]}, {before}, op.fused});
  // PyTorch's defaults, as ONNX's 32 bits hold them.
  const Normalization norm{NormalizationKind::batch, 1, 1, double{1e-5F}, 1 - double{0.9F}};
  editor.fuse(layer, {}, norm, {before, scale, shift, mean, variance});
  editor.rename(layer, op.name + "/batch_norm");
}

}  // namespace

void folded_batch_norms(Editor& editor) {
  const bool numbers_tell = keeps_names(editor);
  std::size_t count = 0;
  std::string first;
  for (const OperationId id : editor.order()) {
    if (!has_channels(editor, editor[id]) || !holds_a_batch_norm(editor, editor[id], numbers_tell)) continue;
    if (count++ == 0) first = editor[id].name;
    unfold(editor, id);
  }
  if (count == 0) return;
  const std::string restored =
      count == 1
          ? fmt::format("the batch-norm folded into {} is put back, and that layer has", first)
          : fmt::format("{} batch-norms folded into layers (the first into {}) are put back, and those layers have",
                        count, first);
  editor.assumed.push_back(fmt::format(
      "the file was exported for inference: {} no other bias; dropout, which such an export leaves out, is not counted",
      restored));
}

}  // namespace sibyl::rewrites
