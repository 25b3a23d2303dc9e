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

}  // namespace

void biases(Editor& editor) {
  for (const OperationId id : editor.order()) {
    const auto* add = std::get_if<Binary>(&editor[id].attributes);
    if (!add || add->kind != BinaryKind::add) continue;
    for (const std::size_t side : {0U, 1U}) {
      const TensorId y = editor[id].inputs[side], bias = editor[id].inputs[1 - side];
      const OperationId producer = editor.producer(y);
      if (!producer.valid() || !takes_bias(editor[producer]) || !lacks_bias(editor[producer])) continue;
      const Shape& result = editor[y].shape;
      if (editor[bias].kind != TensorKind::parameter || result.empty() ||
          editor[editor[id].outputs[0]].shape != result)
        continue;
      const bool along = lies_along_channels(editor[bias].shape, result, channels_from_back(editor[producer], result.size()));
      // Taking the ones out of its shape must not be seen by anyone else.
      if (!along || (editor[bias].shape.size() != 1 && editor.consumers(bias).size() != 1)) continue;
      const Operation& op = editor[producer];
      if (editor.fuse(id, {producer}, Attributes{op.attributes}, {op.inputs[0], op.inputs[1], bias}))
        editor.at(bias).shape = {element_count(editor[bias].shape)};
      break;
    }
  }
}

}  // namespace sibyl::rewrites
