#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

bool is_matrix_parameter(const Editor& editor, TensorId id) {
  return editor[id].kind == TensorKind::parameter && editor[id].shape.size() == 2;
}

}  // namespace

void linears(Editor& editor) {
  for (const OperationId id : editor.order()) {
    if (!std::holds_alternative<MatMul>(editor[id].attributes)) continue;
    const TensorId x = editor[id].inputs[0], w = editor[id].inputs[1];
    if (editor[x].kind == TensorKind::parameter) continue;
    const auto* transposed = editor.produced_by<Transpose>(w);
    if (is_matrix_parameter(editor, w))
      editor.fuse(id, {}, Linear{true}, {x, w});
    else if (transposed && transposed->permutation == Ints{1, 0} && is_matrix_parameter(editor, editor.operand(w, 0)))
      editor.fuse(id, {}, Linear{false}, {x, editor.operand(w, 0)});  // the transpose dies if nothing else uses it
  }
}

}  // namespace sibyl::rewrites
