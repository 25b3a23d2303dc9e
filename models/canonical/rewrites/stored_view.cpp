// A weight that is only read reshaped or transposed is a weight of that shape: the kernel [E, H, D] that Keras gives an
// attention's projection is the matrix [E, H D] of a linear layer. One transposition of a matrix stays; linear layers
// take weights either way round.
#include <algorithm>
#include <utility>
#include <vector>

#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

// From a stored tensor to where something reads it: each transposition's permutation (none: a reshape) and the shape
// after it.
using Moves = std::vector<std::pair<Ints, Shape>>;

struct Reading {
  TensorId tensor;
  Moves moves;
};

void collect_readings(const Editor& editor, TensorId t, const Moves& moves, std::vector<Reading>& readings) {
  bool read = editor.is_output(t);
  for (const OperationId user : editor.consumers(t)) {
    const Operation& op = editor[user];
    const auto* transpose = std::get_if<Transpose>(&op.attributes);
    if (!transpose && !std::holds_alternative<Reshape>(op.attributes)) {
      read = true;
      continue;
    }
    Moves further = moves;
    further.emplace_back(transpose ? transpose->permutation : Ints{}, editor[op.outputs[0]].shape);
    collect_readings(editor, op.outputs[0], further, readings);
  }
  if (read) readings.push_back({t, moves});
}

}  // namespace

void stored_views(Editor& editor) {
  for (std::size_t t = 0; t < editor.tensor_count(); ++t) {
    const TensorId id{t};
    if (editor[id].kind != TensorKind::parameter || editor[id].shape.size() < 2) continue;
    std::vector<Reading> readings;
    collect_readings(editor, id, {}, readings);
    if (readings.empty()) continue;
    const Moves& moves = readings.front().moves;
    const bool turned = moves.size() == 1 && moves[0].first == Ints{1, 0};
    const bool alike = std::all_of(readings.begin(), readings.end(), [&](const Reading& reading) {
      return reading.moves == moves && !editor.is_output(reading.tensor);
    });
    if (moves.empty() || moves.back().second.size() != 2 || turned || !alike) continue;
    editor.at(id).shape = moves.back().second;
    for (const Reading& reading : readings) editor.redirect(reading.tensor, id);
  }
  editor.remove_unused();
}

}  // namespace sibyl::rewrites
