// Limits taken one after the other are one clip: Keras's ReLU6 is a ReLU and a Min in some files.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

constexpr double unlimited = std::numeric_limits<float>::max();  // as ONNX's Clip without a limit

struct Limits {
  double low, high;
};

std::optional<Limits> limits_of(const Editor& editor, TensorId t) {
  if (unary(editor, t, UnaryKind::relu)) return Limits{0, unlimited};
  if (const auto* clip = unary(editor, t, UnaryKind::clip)) return Limits{clip->alpha, clip->beta};
  return std::nullopt;
}

}  // namespace

void limits(Editor& editor) {
  for (const OperationId id : editor.order()) {
    const auto outer = limits_of(editor, editor[id].outputs[0]);
    if (!outer) continue;
    const TensorId x = editor[id].inputs[0];
    const auto inner = limits_of(editor, x);
    if (!inner || editor.sole_consumer(x) != id || outer->low > outer->high) continue;
    const double low = std::clamp(inner->low, outer->low, outer->high);
    const double high = std::clamp(inner->high, outer->low, outer->high);
    const Unary both = low == 0 && high >= unlimited ? Unary{UnaryKind::relu} : Unary{UnaryKind::clip, low, high};
    editor.fuse(id, {editor.producer(x)}, both, {editor.operand(x, 0)});
  }
}

}  // namespace sibyl::rewrites
