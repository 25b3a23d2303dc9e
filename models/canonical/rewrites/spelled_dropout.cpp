// torch.onnx spells a Bernoulli draw of keeping with probability p as (u < p) with u drawn uniformly, cast to a number,
// and divided by p: a dropout of ones, [N, 1, 1, 1] in stochastic depth (Huang et al., 2016), which drops a residual
// block of some samples whole. What multiplies it is left as it is: PyTorch runs that product, too.
#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

// The probability with which `comparison` holds of numbers drawn between 0 and 1; none where it compares others.
std::optional<double> chance(const Editor& editor, const Operation& comparison) {
  const auto* op = std::get_if<Binary>(&comparison.attributes);
  if (!op || !editor.produced_by<Dropout>(comparison.inputs[0])) return std::nullopt;
  if (!is_constant(editor, editor.operand(comparison.inputs[0], 0))) return std::nullopt;
  const auto limit = scalar_value(editor, comparison.inputs[1]);
  if (!limit) return std::nullopt;
  if (op->kind == BinaryKind::less || op->kind == BinaryKind::less_equal) return *limit;
  if (op->kind == BinaryKind::greater || op->kind == BinaryKind::greater_equal) return 1 - *limit;
  return std::nullopt;
}

}  // namespace

void spelled_dropouts(Editor& editor) {
  for (const OperationId id : editor.order()) {
    const auto kept = chance(editor, editor[id]);
    if (!kept || *kept <= 0 || *kept > 1) continue;
    const OperationId cast = editor.sole_consumer(editor[id].outputs[0]);
    if (!cast.valid() || !std::holds_alternative<Cast>(editor[cast].attributes)) continue;
    const OperationId scale = editor.sole_consumer(editor[cast].outputs[0]);
    if (!scale.valid()) continue;
    const auto* by = std::get_if<Unary>(&editor[scale].attributes);
    if (!by || by->kind != UnaryKind::scale_shift || by->beta != 0 || !near(by->alpha * *kept, 1)) continue;
    const OperationId draw = editor.producer(editor[id].inputs[0]);
    const TensorId ones = editor[draw].inputs[0];
    if (editor[ones].dtype != editor[editor[scale].outputs[0]].dtype) continue;
    editor.fuse(scale, {draw, id, cast}, Dropout{1 - *kept}, {ones});
  }
}

}  // namespace sibyl::rewrites
