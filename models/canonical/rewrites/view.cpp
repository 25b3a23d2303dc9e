#include <numeric>

#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

bool is_identity(const Ints& permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

// At any batch: at a batch of 1 a class token's expansion to the batch looks as if it did nothing.
bool same_extents(const Tensor& x, const Tensor& y) { return x.shape == y.shape && x.batch_axis == y.batch_axis; }

bool changes_nothing(const Editor& editor, const Operation& op) {
  const Tensor& x = editor[op.inputs[0]];
  const Tensor& y = editor[op.outputs[0]];
  if (std::holds_alternative<Reshape>(op.attributes) || std::holds_alternative<Expand>(op.attributes))
    return same_extents(x, y);
  if (const auto* t = std::get_if<Transpose>(&op.attributes)) return is_identity(t->permutation);
  if (std::holds_alternative<Concat>(op.attributes)) return op.inputs.size() == 1;
  if (const auto* cast = std::get_if<Cast>(&op.attributes)) return cast->to == x.dtype;
  return false;
}

}  // namespace

void views(Editor& editor) {
  for (const OperationId id : editor.order()) {
    const Operation& op = editor[id];
    if (op.inputs.empty() || !op.inputs[0].valid()) continue;
    const TensorId x = op.inputs[0], y = op.outputs[0];
    if (changes_nothing(editor, op)) {
      editor.redirect(y, x);
    } else if (std::holds_alternative<Reshape>(op.attributes) && editor.produced_by<Reshape>(x)) {
      editor.fuse(id, {}, Reshape{}, {editor.operand(x, 0)});
      if (same_extents(editor[editor.operand(y, 0)], editor[y])) editor.redirect(y, editor.operand(y, 0));
    } else if (const auto* outer = std::get_if<Transpose>(&op.attributes)) {
      const auto* inner = editor.produced_by<Transpose>(x);
      if (!inner) continue;
      Ints composed;
      for (const std::int64_t axis : outer->permutation)
        composed.push_back(inner->permutation[static_cast<std::size_t>(axis)]);
      const TensorId source = editor.operand(x, 0);
      if (is_identity(composed))
        editor.redirect(y, source);
      else
        editor.fuse(id, {}, Transpose{composed}, {source});
    }
  }
}

}  // namespace sibyl::rewrites
