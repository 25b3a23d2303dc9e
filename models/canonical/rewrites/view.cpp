#include <algorithm>
#include <utility>

#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

bool is_identity(const Ints& permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

// N C H W -> N H W C or back: layouts() may move such ones first.
bool moves_channels(const Ints& permutation) {
  const std::size_t rank = permutation.size();
  if (rank < 4 || permutation[0] != 0) return false;
  Ints last(rank), first(rank);
  for (std::size_t i = 1; i < rank; ++i) {
    last[i] = static_cast<std::int64_t>(i + 1 < rank ? i + 1 : 1);
    first[i] = static_cast<std::int64_t>(i > 1 ? i - 1 : rank - 1);
  }
  return permutation == last || permutation == first;
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
      Ints permutation = outer->permutation;
      TensorId source = x;
      if (const auto* inner = editor.produced_by<Transpose>(x)) {
        for (std::int64_t& axis : permutation) axis = inner->permutation[static_cast<std::size_t>(axis)];
        source = editor.operand(x, 0);
      }
      if (is_identity(permutation))
        editor.redirect(y, source);
      else if (keeps_order(editor[source], permutation) && !moves_channels(permutation))
        editor.fuse(id, {}, Reshape{}, {source});
      else if (source != x)
        editor.fuse(id, {}, Transpose{permutation}, {source});
    }
  }
}

void unit_axes(Editor& editor) {
  for (const OperationId id : editor.order()) {
    const auto* op = std::get_if<Transpose>(&editor[id].attributes);
    if (!op || !editor.produced_by<Reshape>(editor[id].inputs[0])) continue;
    const TensorId x = editor[id].inputs[0];
    Tensor narrow = editor[x], turned = editor[editor[id].outputs[0]];
    Ints place, permutation;  // where each axis of x is in the narrow tensor; -1: nowhere
    narrow.shape.clear();
    for (std::size_t axis = 0; axis < editor[x].shape.size(); ++axis) {
      const bool kept = editor[x].shape[axis] != 1 || editor[x].batch_axis == axis;
      place.push_back(kept ? static_cast<std::int64_t>(narrow.shape.size()) : -1);
      if (editor[x].batch_axis == axis) narrow.batch_axis = narrow.shape.size();
      if (kept) narrow.shape.push_back(editor[x].shape[axis]);
    }
    if (narrow.shape.size() == place.size()) continue;
    turned.shape.clear();
    for (const std::int64_t axis : op->permutation) {
      const std::int64_t from = place[static_cast<std::size_t>(axis)];
      if (from < 0) continue;
      if (narrow.batch_axis == static_cast<std::size_t>(from)) turned.batch_axis = permutation.size();
      permutation.push_back(from);
      turned.shape.push_back(narrow.shape[static_cast<std::size_t>(from)]);
    }
    if (std::is_sorted(permutation.begin(), permutation.end())) continue;
    narrow.name = turned.name + "/squeezed";
    turned.name += "/turned";
    const TensorId squeezed = editor.insert_before(id, Reshape{}, {x}, std::move(narrow));
    const TensorId y = editor.insert_before(id, Transpose{permutation}, {squeezed}, std::move(turned));
    editor.fuse(id, {}, Reshape{}, {y});
  }
  views(editor);
}

void folded_transposes(Editor& editor) {
  for (const OperationId id : editor.order()) {
    const auto* op = std::get_if<Transpose>(&editor[id].attributes);
    if (!op || op->permutation != Ints{0, 2, 1}) continue;
    const TensorId folded = editor[id].inputs[0];
    if (!editor.produced_by<Reshape>(folded)) continue;
    const TensorId x = editor.operand(folded, 0);
    const Shape shape = editor[x].shape;
    if (shape.size() != 4 || !editor.produced_by<Transpose>(x)) continue;
    if (editor[folded].shape != Shape{shape[0] * shape[1], shape[2], shape[3]}) continue;
    if (editor[x].batch_axis && *editor[x].batch_axis > 1) continue;
    Tensor turned = editor[x];
    std::swap(turned.shape[2], turned.shape[3]);
    turned.name = editor[editor[id].outputs[0]].name + "/unfolded";
    const TensorId y = editor.insert_before(id, Transpose{{0, 1, 3, 2}}, {x}, std::move(turned));
    editor.fuse(id, {}, Reshape{}, {y});
  }
  views(editor);
}

}  // namespace sibyl::rewrites
