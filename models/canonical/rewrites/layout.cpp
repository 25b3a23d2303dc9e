// TensorFlow's images are channels last, ONNX's convolutions channels first. tf2onnx puts a transposition on either
// side of each convolution and cancels most; where it leaves some, what stands between two of them is run channels
// first,
//   f(transposed(x)) = transposed(f(x)),
// so that the second follows the first, and both go. Elementwise operations, reductions, concatenations and padding are
// passed; operands that are a vector of channels, or one value for each, are reshaped.
#include <algorithm>
#include <optional>

#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

// The transposition N C H W -> N H W C (or of volumes) that made t, or null.
const Transpose* to_channels_last(const Editor& editor, TensorId t) {
  const auto* made = editor.produced_by<Transpose>(t);
  if (!made || made->permutation.size() < 4) return nullptr;
  const Ints& axes = made->permutation;
  for (std::size_t i = 1; i + 1 < axes.size(); ++i)
    if (axes[i] != static_cast<std::int64_t>(i) + 1) return nullptr;
  return axes.front() == 0 && axes.back() == 1 ? made : nullptr;
}

bool is_elementwise(const Operation& op) {
  const auto* function = std::get_if<Unary>(&op.attributes);
  return (function && function->kind != UnaryKind::prelu) || std::holds_alternative<Binary>(op.attributes) ||
         std::holds_alternative<Where>(op.attributes) || std::holds_alternative<Dropout>(op.attributes);
}

bool passes(const Operation& op) {
  return is_elementwise(op) || std::holds_alternative<Reduce>(op.attributes) ||
         std::holds_alternative<Concat>(op.attributes) || std::holds_alternative<Pad>(op.attributes);
}

// True if every reader of t can be moved before the transposition that made it, or undoes it.
bool vanishes(const Editor& editor, TensorId t) {
  const auto users = editor.consumers(t);
  return !editor.is_output(t) && std::all_of(users.begin(), users.end(), [&](OperationId user) {
    return passes(editor[user]) || std::holds_alternative<Transpose>(editor[user].attributes);
  });
}

// The operation's attributes for operands before the transposition; nothing where its result would be no transposition
// of the new one.
std::optional<Attributes> before_transposition(const Operation& op, const Ints& permutation) {
  const auto rank = static_cast<std::int64_t>(permutation.size());
  const auto source = [&](std::int64_t axis) {
    return permutation[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
  };
  if (const auto* concat = std::get_if<Concat>(&op.attributes)) return Concat{source(concat->axis)};
  if (const auto* pad = std::get_if<Pad>(&op.attributes)) {
    Pad moved = *pad;
    for (std::size_t i = 0; i < permutation.size(); ++i) {
      moved.begin[static_cast<std::size_t>(permutation[i])] = pad->begin[i];
      moved.end[static_cast<std::size_t>(permutation[i])] = pad->end[i];
    }
    return moved;
  }
  const auto* reduce = std::get_if<Reduce>(&op.attributes);
  if (!reduce) return op.attributes;
  Reduce moved = *reduce;
  for (std::int64_t& axis : moved.axes) axis = source(axis);
  std::sort(moved.axes.begin(), moved.axes.end());
  Ints left;  // axes of the result, in its order
  for (const std::int64_t axis : permutation)
    if (!std::binary_search(moved.axes.begin(), moved.axes.end(), axis)) left.push_back(axis);
  if (!moved.keep_dims && !std::is_sorted(left.begin(), left.end())) return std::nullopt;
  return moved;
}

// [..., H, W, C] of `rank` extents -> [..., C, H, W].
Shape channels_first(Shape shape, std::size_t rank) {
  shape.insert(shape.begin(), rank - shape.size(), 1);
  std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return shape;
}

// True if `t` is transposed alike, or is as well read channels first by a reshape: it has channels alone, or none.
bool has_channels_first(const Editor& editor, TensorId t, std::size_t rank) {
  if (!t.valid() || editor[t].shape.size() > rank) return false;
  if (const auto* made = to_channels_last(editor, t)) return made->permutation.size() == rank;
  if (editor[t].batch_axis && (*editor[t].batch_axis != 0 || editor[t].shape.size() != rank)) return false;
  const Shape shape = channels_first(editor[t].shape, rank);
  return shape[1] == 1 || std::all_of(shape.begin() + 2, shape.end(), [](std::int64_t extent) { return extent == 1; });
}

TensorId with_channels_first(Editor& editor, OperationId place, TensorId t, std::size_t rank) {
  if (to_channels_last(editor, t)) return editor.operand(t, 0);
  Tensor tensor = editor[t];
  const std::size_t given = tensor.shape.size();
  tensor.shape = channels_first(tensor.shape, rank);
  if (given < rank)  // as few ones in front as there can be
    tensor.shape.erase(tensor.shape.begin(), std::find_if(tensor.shape.begin(), tensor.shape.end(),
                                                          [](std::int64_t extent) { return extent != 1; }));
  if (tensor.shape == editor[t].shape || element_count(tensor.shape) == 1) return t;
  if (tensor.kind == TensorKind::parameter && editor.sole_consumer(t).valid()) {
    editor.at(t).shape = tensor.shape;
    return t;
  }
  tensor.name += "/channels_first";
  return editor.insert_before(place, Reshape{}, {t}, std::move(tensor));
}

void move_before_transposition(Editor& editor, OperationId id) {
  const Operation op = editor[id];
  if (!passes(op) || op.outputs.size() != 1) return;
  const auto operand = std::find_if(op.inputs.begin(), op.inputs.end(),
                                    [&](TensorId t) { return to_channels_last(editor, t) && vanishes(editor, t); });
  if (operand == op.inputs.end()) return;
  const Ints permutation = to_channels_last(editor, *operand)->permutation;
  const std::size_t rank = permutation.size();
  const auto attributes = before_transposition(op, permutation);
  const bool all =
      std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId t) { return has_channels_first(editor, t, rank); });
  if (!attributes || !all) return;
  std::vector<TensorId> inputs;
  for (const TensorId t : op.inputs) inputs.push_back(with_channels_first(editor, id, t, rank));
  if (editor[op.outputs[0]].shape.size() != rank) {
    editor.fuse(id, {}, *attributes, std::move(inputs));
    return;
  }
  Tensor result = editor[op.outputs[0]];
  result.name += "/channels_first";
  result.shape = channels_first(result.shape, rank);
  if (result.batch_axis) result.batch_axis = static_cast<std::size_t>(permutation[*result.batch_axis]);
  const TensorId y = editor.add(std::move(result));
  const OperationId moved = editor.insert_before(id, Operation{op.name, *attributes, std::move(inputs), {y}, {}});
  if (editor.fuse(id, {}, Transpose{permutation}, {y})) editor.hand_over_fused(id, moved);
}

}  // namespace

void layouts(Editor& editor) {
  for (const OperationId id : editor.order())
    if (editor.alive(id)) move_before_transposition(editor, id);
  views(editor);
  editor.remove_unused();
  for (const OperationId id : editor.order())
    if (const auto* left = std::get_if<Transpose>(&editor[id].attributes))
      if (keeps_order(editor[editor[id].inputs[0]], left->permutation))
        editor.fuse(id, {}, Reshape{}, {editor[id].inputs[0]});
}

}  // namespace sibyl::rewrites
