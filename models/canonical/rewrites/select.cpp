#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {

void selects(Editor& editor) {
  for (const OperationId id : editor.order()) {
    const Operation op = editor[id];
    const auto* gather = std::get_if<Gather>(&op.attributes);
    if (!gather || !editor[op.inputs[1]].shape.empty()) continue;
    const auto index = scalar_value(editor, op.inputs[1]);
    if (!index) continue;
    Tensor sliced = editor[op.inputs[0]];
    auto& extent = sliced.shape[static_cast<std::size_t>(gather->axis)];
    auto position = static_cast<std::int64_t>(*index);
    if (position < 0) position += extent;
    if (position < 0 || position >= extent) continue;
    extent = 1;
    if (sliced.batch_axis && *sliced.batch_axis == static_cast<std::size_t>(gather->axis)) continue;
    sliced.name = op.name + "/slice";
    const TensorId slice = editor.insert_before(
        id, Slice{{gather->axis}, {position}, {position + 1}, {1}}, {op.inputs[0]}, std::move(sliced));
    editor.fuse(id, {}, Reshape{}, {slice});
  }
}

}  // namespace sibyl::rewrites
