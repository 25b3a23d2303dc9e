#include <algorithm>

#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

// The axis of the result that a bias runs along, counted from the back.
std::size_t channels_from_back(const Operation& op, std::size_t rank) {
  return std::holds_alternative<Convolution>(op.attributes) ? rank - 2 : 0;
}

bool lacks_bias(const Operation& op) { return op.inputs.size() < 3 || !op.inputs[2].valid(); }

bool takes_bias(const Operation& op) {
  return std::holds_alternative<Convolution>(op.attributes) || std::holds_alternative<Linear>(op.attributes);
}

// True if `bias` broadcasts along the channels alone: [1, C, 1, 1], [C, 1, 1] for images, [N] for rows.
bool lies_along_channels(const Shape& bias, const Shape& result, std::size_t from_back) {
  if (bias.size() <= from_back || bias.size() > result.size()) return false;
  const std::size_t axis = bias.size() - 1 - from_back;
  return bias[axis] == result[result.size() - 1 - from_back] && element_count(bias) == bias[axis];
}

// The bias of a Linear whose channels were reshaped, to heads or to nothing new, before it was added: it runs along the
// last axes of y, which are together the channels.
bool spans_channels(const Shape& bias, const Shape& y, std::int64_t channels) {
  const auto extents = std::find_if(bias.begin(), bias.end(), [](std::int64_t extent) { return extent != 1; });
  const auto axes = bias.end() - extents;
  return bias.size() <= y.size() && element_count(bias) == channels &&
         std::equal(extents, bias.end(), y.end() - axes, y.end());
}

bool fuse_through_reshape(Editor& editor, OperationId add, TensorId y, TensorId bias) {
  if (!editor.produced_by<Reshape>(y) || editor.sole_consumer(y) != add) return false;
  const OperationId reshape = editor.producer(y);
  const TensorId product = editor.operand(y, 0);
  const OperationId linear = editor.producer(product);
  if (!editor.produced_by<Linear>(product) || editor.sole_consumer(product) != reshape || !lacks_bias(editor[linear]))
    return false;
  if (editor[bias].kind != TensorKind::parameter || editor[editor[add].outputs[0]].shape != editor[y].shape ||
      !spans_channels(editor[bias].shape, editor[y].shape, editor[product].shape.back()) ||
      (editor[bias].shape.size() != 1 && editor.consumers(bias).size() != 1))
    return false;
  Operation biased = editor[linear];
  biased.inputs = {biased.inputs[0], biased.inputs[1], bias};
  Tensor sum = editor[product];
  sum.name += "/biased";
  biased.outputs = {editor.add(std::move(sum))};
  const OperationId layer = editor.insert_before(linear, std::move(biased));
  const TensorId result = editor[layer].outputs[0];
  if (!editor.fuse(add, {reshape, linear}, Reshape{}, {result})) return false;
  editor.hand_over_fused(add, layer);
  editor.at(bias).shape = {element_count(editor[bias].shape)};
  return true;
}

}  // namespace

void biases(Editor& editor, bool of_linear_apart) {
  for (const OperationId id : editor.order()) {
    const auto* add = std::get_if<Binary>(&editor[id].attributes);
    if (!add || add->kind != BinaryKind::add) continue;
    if (!of_linear_apart && (fuse_through_reshape(editor, id, editor[id].inputs[0], editor[id].inputs[1]) ||
                             fuse_through_reshape(editor, id, editor[id].inputs[1], editor[id].inputs[0])))
      continue;
    for (const std::size_t side : {0U, 1U}) {
      const TensorId y = editor[id].inputs[side], bias = editor[id].inputs[1 - side];
      const OperationId producer = editor.producer(y);
      if (!producer.valid() || !takes_bias(editor[producer]) || !lacks_bias(editor[producer])) continue;
      if (of_linear_apart && editor.produced_by<Linear>(y)) continue;
      const Shape& result = editor[y].shape;
      if (editor[bias].kind != TensorKind::parameter || result.empty() || editor[editor[id].outputs[0]].shape != result)
        continue;
      const bool along =
          lies_along_channels(editor[bias].shape, result, channels_from_back(editor[producer], result.size()));
      // Taking the ones out of its shape must not be seen by anyone else.
      if (!along || (editor[bias].shape.size() != 1 && editor.consumers(bias).size() != 1)) continue;
      const Operation& op = editor[producer];
      if (editor.fuse(id, {producer}, Attributes{op.attributes}, {op.inputs[0], op.inputs[1], bias}))
        editor.at(bias).shape = {element_count(editor[bias].shape)};
      break;
    }
  }
}

void split_biases(Editor& editor) {
  for (const OperationId id : editor.order()) {
    if (!std::holds_alternative<Convolution>(editor[id].attributes) || lacks_bias(editor[id])) continue;
    const Operation biased = editor[id];
    const TensorId bias = biased.inputs[2];
    if (editor.consumers(bias).size() != 1) continue;
    Tensor images = editor[biased.outputs[0]];
    const std::size_t axes = images.shape.size() - 2;
    images.name += "/unbiased";
    const TensorId y = editor.insert_before(id, biased.attributes, {biased.inputs[0], biased.inputs[1]}, images);
    editor.at(bias).shape.resize(1 + axes, 1);  // [C, 1, 1]
    editor.fuse(id, {}, Binary{BinaryKind::add}, {y, bias});
  }
}

}  // namespace sibyl::rewrites
