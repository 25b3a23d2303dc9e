// A mask stored as floats looks like a weight in the file. Where nothing but comparisons, conditions and casts to
// integers read it, no gradient reaches it, whatever it holds: training would keep it as a buffer, without optimizer
// state.
#include <algorithm>

#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

// True if the operand's gradient is zero or undefined whatever it holds.
bool ignores_gradient(const Operation& op, std::size_t operand) {
  if (const auto* binary = std::get_if<Binary>(&op.attributes)) return binary->kind >= BinaryKind::equal;
  if (const auto* cast = std::get_if<Cast>(&op.attributes)) return !is_floating(cast->to);
  return std::holds_alternative<Where>(op.attributes) && operand == 0;
}

// True if every use of the tensor, seen through what only moves elements, ignores its gradient.
bool only_ignored(const Editor& editor, TensorId id) {
  const auto users = editor.consumers(id);
  return !editor.is_output(id) && std::all_of(users.begin(), users.end(), [&](OperationId user) {
    const Operation& op = editor[user];
    const bool moves = std::holds_alternative<Slice>(op.attributes) || std::holds_alternative<Reshape>(op.attributes) ||
                       std::holds_alternative<Expand>(op.attributes) ||
                       std::holds_alternative<Transpose>(op.attributes);
    if (moves) return only_ignored(editor, op.outputs[0]);
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (op.inputs[i] == id && !ignores_gradient(op, i)) return false;
    return true;
  });
}

}  // namespace

void constants(Editor& editor) {
  for (std::size_t t = 0; t < editor.tensor_count(); ++t) {
    const TensorId id{t};
    if (editor[id].kind == TensorKind::parameter && only_ignored(editor, id)) editor.at(id).kind = TensorKind::buffer;
  }
}

}  // namespace sibyl::rewrites
