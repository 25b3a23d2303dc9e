// GroupNorm (Wu and He, 2018) as torch.onnx writes it: the channels of x[N, C, ...] reshaped to [N, groups, rest], an
// instance-norm whose own scale and shift are constants (ones and zeros), reshaped back, times a scale and plus a shift
// of [C, 1, 1].
#include <algorithm>

#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

// The vector of C that `t` spreads along the channels of a tensor of `rank` dimensions, or an invalid id.
TensorId channel_vector(const Editor& editor, TensorId t, std::int64_t channels, std::size_t rank) {
  const Shape spread = editor[t].shape;
  if (spread.size() + 1 < rank || spread.size() > rank || element_count(spread) != channels) return {};
  if (spread[spread.size() - (rank - 1)] != channels) return {};
  if (editor.produced_by<Reshape>(t) && editor[editor.operand(t, 0)].shape == Shape{channels})
    return editor.operand(t, 0);
  // A parameter's ones are taken out of its shape, which nobody else must see.
  return editor[t].kind == TensorKind::parameter && editor.sole_consumer(t).valid() ? t : TensorId{};
}

// The operation after y, if it is the only one and of that kind.
OperationId next(const Editor& editor, TensorId y, BinaryKind kind) {
  const OperationId id = editor.sole_consumer(y);
  return id.valid() && binary(editor, editor[id].outputs[0], kind) ? id : OperationId{};
}

void rewrite(Editor& editor, OperationId instance) {
  const Operation op = editor[instance];
  const auto& norm = std::get<Normalization>(op.attributes);
  const TensorId grouped = op.inputs[0];
  const OperationId back = editor.sole_consumer(op.outputs[0]);
  const bool plain =
      std::all_of(op.inputs.begin() + 1, op.inputs.end(), [&](TensorId t) { return is_constant(editor, t); });
  if (!plain || !editor.produced_by<Reshape>(grouped) || !back.valid() ||
      !std::holds_alternative<Reshape>(editor[back].attributes))
    return;
  const TensorId x = editor.operand(grouped, 0), y = editor[back].outputs[0];
  const Shape shape = editor[x].shape;
  if (shape.size() < 3 || editor[y].shape != shape || editor[grouped].shape[0] != shape[0]) return;
  const std::int64_t channels = shape[1], groups = editor[grouped].shape[1];
  if (groups < 1 || channels % groups != 0) return;

  const OperationId product = next(editor, y, BinaryKind::mul);
  if (!product.valid()) return;
  const OperationId sum = next(editor, editor[product].outputs[0], BinaryKind::add);
  if (!sum.valid()) return;
  const TensorId scale = channel_vector(editor, other_operand(editor[product], y), channels, shape.size());
  if (!scale.valid()) return;
  const TensorId shift =
      channel_vector(editor, other_operand(editor[sum], editor[product].outputs[0]), channels, shape.size());
  if (!shift.valid()) return;
  const Normalization group{NormalizationKind::group, 1, groups, norm.epsilon, norm.momentum};
  if (!editor.fuse(sum, {editor.producer(grouped), instance, back, product}, group, {x, scale, shift})) return;
  editor.at(scale).shape = editor.at(shift).shape = {channels};
}

}  // namespace

void group_norms(Editor& editor) {
  for (const OperationId id : editor.order()) {
    if (!editor.alive(id)) continue;
    const auto* norm = std::get_if<Normalization>(&editor[id].attributes);
    if (norm && norm->kind == NormalizationKind::instance) rewrite(editor, id);
  }
}

}  // namespace sibyl::rewrites
