// torch.nn.MultiheadAttention keeps tokens in front and folds heads into the batch,
//   [S, B, H D] -> [S, B H, D] -> [B H, S, D] -> [B, H, S, D],
// and takes its result back the same way. A part of the features is a part of the heads; of B H as one dimension it is
// a part of the samples, too. So heads stay a dimension of their own,
//   [S, B, H D] -> [S, B, H, D] -> [B, H, S, D].
// Elements move as before. Only what attention reads and makes is changed, and only where the batch is known to be B.
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

constexpr std::size_t in_front = 0, behind_tokens = 1;  // where the batch is

// Of x [S, B*H, D], which views [..., B, H*D]. 1: it is no such view, or of one head.
std::int64_t heads_of_features(const Editor& editor, TensorId t) {
  if (!editor.produced_by<Reshape>(t)) return 1;
  const Tensor &x = editor[t], &features = editor[editor.operand(t, 0)];
  const std::size_t rank = features.shape.size();
  if (x.shape.size() != 3 || x.batch_axis != behind_tokens || rank < 3 || features.batch_axis != rank - 2) return 1;
  const std::int64_t width = x.shape[2], all = features.shape[rank - 1];
  if (width < 1 || all < width || all % width != 0) return 1;
  const std::int64_t heads = all / width;
  return features.shape[rank - 2] * heads == x.shape[1] ? heads : 1;
}

// Of x [B*H, S, D], which views [B, H, S, D].
std::int64_t heads_of_view(const Editor& editor, TensorId t) {
  if (!editor.produced_by<Reshape>(t)) return 1;
  const Tensor &x = editor[t], &apart = editor[editor.operand(t, 0)];
  if (apart.shape.size() != 4 || apart.batch_axis != in_front || apart.shape[1] < 1) return 1;
  const Shape& s = apart.shape;
  return x.shape == Shape{s[0] * s[1], s[2], s[3]} ? s[1] : 1;
}

// x [S, B*H, D] where t [B, H, S, D] is a view of its transposition; else invalid.
TensorId with_tokens_in_front(const Editor& editor, TensorId t) {
  if (!editor.produced_by<Reshape>(t)) return {};
  const TensorId folded = editor.operand(t, 0);
  const auto* turn = editor.produced_by<Transpose>(folded);
  if (!turn || turn->permutation != Ints{1, 0, 2}) return {};
  const TensorId x = editor.operand(folded, 0);
  const Shape& s = editor[t].shape;
  const bool fits = s.size() == 4 && s[1] > 1 && editor[x].shape == Shape{s[2], s[0] * s[1], s[3]} &&
                    editor[t].batch_axis == in_front && editor[x].batch_axis == behind_tokens;
  return fits ? x : TensorId{};
}

// [B, H, S, D] -> [S, B, H, D]
Tensor tokens_first(Tensor t, const std::string& name) {
  t.shape = {t.shape[2], t.shape[0], t.shape[1], t.shape[3]};
  t.batch_axis = behind_tokens;
  t.name = name + "/heads";
  return t;
}

bool unfold_operand(Editor& editor, TensorId t) {
  const TensorId x = with_tokens_in_front(editor, t);
  if (!x.valid()) return false;
  const OperationId view = editor.producer(t);
  const TensorId heads = editor.insert_before(view, Reshape{}, {x}, tokens_first(editor[t], editor[t].name));
  return editor.fuse(view, {}, Transpose{{1, 2, 0, 3}}, {heads});
}

bool unfold_result(Editor& editor, TensorId y) {
  const OperationId fold = editor.sole_consumer(y);
  if (!fold.valid() || !std::holds_alternative<Reshape>(editor[fold].attributes)) return false;
  const TensorId folded = editor[fold].outputs[0];
  const OperationId turn = editor.sole_consumer(folded);
  if (!turn.valid()) return false;
  const auto* transpose = std::get_if<Transpose>(&editor[turn].attributes);
  if (!transpose || transpose->permutation != Ints{1, 0, 2}) return false;
  const Shape& s = editor[y].shape;
  const bool fits = s.size() == 4 && s[1] > 1 && editor[folded].shape == Shape{s[0] * s[1], s[2], s[3]} &&
                    editor[y].batch_axis == in_front && editor[folded].batch_axis == in_front;
  if (!fits) return false;
  const std::string name = editor[editor[turn].outputs[0]].name;
  const TensorId heads = editor.insert_before(turn, Transpose{{2, 0, 1, 3}}, {y}, tokens_first(editor[y], name));
  return editor.fuse(turn, {}, Reshape{}, {heads});
}

}  // namespace

std::int64_t heads_in_batch(const Editor& editor, TensorId t) {
  if (editor[t].shape.size() != 3 || editor[t].batch_axis != in_front) return 1;
  const auto* turn = editor.produced_by<Transpose>(t);
  if (!turn) return heads_of_view(editor, t);
  const TensorId x = editor.operand(t, 0);
  if (turn->permutation[0] == 1) return heads_of_features(editor, x);
  return turn->permutation == Ints{0, 2, 1} ? heads_of_view(editor, x) : 1;
}

void folded_heads(Editor& editor) {
  bool unfolded = false;
  for (const OperationId id : editor.order()) {
    if (!std::holds_alternative<Attention>(editor[id].attributes)) continue;
    const Operation attention = editor[id];  // a copy: what is inserted moves operations
    for (std::size_t i = 0; i < 3; ++i) unfolded = unfold_operand(editor, attention.inputs[i]) || unfolded;
    unfolded = unfold_result(editor, attention.outputs[0]) || unfolded;
  }
  if (unfolded) editor.remove_unused();
}

}  // namespace sibyl::rewrites
