// Dense layers of Keras (as tensordot) and products that einsum was taken apart into flatten what they multiply,
//   [B, S, K] -> [B S, K] -> [B S, N] -> [B, S, N],
// which a linear layer does by itself. The last reshape may split the features further, into heads, and the first may
// join them: such a reshape stays.
#include <algorithm>
#include <numeric>

#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

// How many leading extents x and y share that are together `rows`; 0 if none, or one alone. A batch of one is an extent
// as any other: tokens may stand before it.
std::size_t shared_rows(const Tensor& x, const Tensor& y, std::int64_t rows) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < std::min(x.shape.size(), y.shape.size()) && x.shape[i] == y.shape[i]; ++i) {
    product *= x.shape[i];
    if (product == rows && i > 0 && (x.shape[i] > 1 || x.batch_axis == i))
      return x.batch_axis == y.batch_axis ? i + 1 : 0;
  }
  return 0;
}

// `like` with rows of the leading extents of `source`, and so many features.
Tensor with_rows(Tensor like, const Tensor& source, std::size_t leading, std::int64_t features) {
  like.shape.assign(source.shape.begin(), source.shape.begin() + static_cast<std::ptrdiff_t>(leading));
  like.shape.push_back(features);
  like.batch_axis = source.batch_axis;
  like.name += "/rows";
  return like;
}

void rewrite_rows_of(Editor& editor, OperationId back) {
  const TensorId product = editor[back].inputs[0], result = editor[back].outputs[0];
  if (!editor.produced_by<Linear>(product) || editor.sole_consumer(product) != back) return;
  const OperationId linear = editor.producer(product);
  Operation op = editor[linear];
  const TensorId rows = op.inputs[0];
  if (!editor.produced_by<Reshape>(rows) || editor[rows].shape.size() != 2) return;
  const TensorId x = editor.operand(rows, 0);
  const std::size_t leading = shared_rows(editor[x], editor[result], editor[rows].shape[0]);
  if (leading == 0 || (editor[x].batch_axis && *editor[x].batch_axis >= leading)) return;

  op.inputs[0] = x;
  if (editor[x].shape.size() != leading + 1)
    op.inputs[0] = editor.insert_before(linear, Reshape{}, {x},
                                        with_rows(editor[rows], editor[x], leading, editor[rows].shape[1]));
  if (editor[result].shape.size() == leading + 1) {
    editor.fuse(back, {linear}, op.attributes, op.inputs);
    return;
  }
  const TensorId kept = editor.add(with_rows(editor[product], editor[x], leading, editor[product].shape[1]));
  const OperationId replacement =
      editor.insert_before(linear, Operation{op.name, op.attributes, op.inputs, {kept}, op.fused});
  if (editor.fuse(back, {linear}, Reshape{}, {kept})) editor.hand_over_fused(back, replacement);
}

}  // namespace

void kept_rows(Editor& editor) {
  for (const OperationId id : editor.order())
    if (editor.alive(id) && std::holds_alternative<Reshape>(editor[id].attributes)) rewrite_rows_of(editor, id);
}

}  // namespace sibyl::rewrites
