// Rotary position embeddings (Su et al., 2021) stay the elementwise operations that frameworks run, but their tables of
// cosines and sines, stored in the file, are no weights:
//   x cos + rotated(x) sin                   halves, or even and odd elements, of x exchanged, one of them negated
//   a cos - b sin, a sin + b cos             the parts a and b of x turned one by one
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

TensorId behind_reshapes(const Editor& editor, TensorId t) {
  while (editor.produced_by<Reshape>(t)) t = editor.operand(t, 0);
  return t;
}

// The tensor that `t` is a part of.
TensorId whole_of(const Editor& editor, TensorId t) {
  t = behind_reshapes(editor, t);
  const bool part = editor.produced_by<Slice>(t) || editor.produced_by<Split>(t);
  return part ? behind_reshapes(editor, editor.operand(t, 0)) : TensorId{};
}

// What `t` is the negative of.
TensorId negated(const Editor& editor, TensorId t) {
  t = behind_reshapes(editor, t);
  const auto* scale = unary(editor, t, UnaryKind::scale_shift);
  const bool negative = unary(editor, t, UnaryKind::neg) || (scale && scale->alpha == -1 && scale->beta == 0);
  return negative ? editor.operand(t, 0) : TensorId{};
}

bool is_rotation(const Editor& editor, TensorId t, TensorId x) {
  t = behind_reshapes(editor, t);
  const OperationId concat = editor.producer(t);
  if (!editor.produced_by<Concat>(t) || editor[concat].inputs.size() != 2) return false;
  const TensorId minus = negated(editor, editor[concat].inputs[0]);
  return minus.valid() && whole_of(editor, minus) == behind_reshapes(editor, x) &&
         whole_of(editor, editor[concat].inputs[1]) == behind_reshapes(editor, x);
}

// x times a smaller table.
struct Product {
  OperationId operation;
  TensorId x, table;
};

std::optional<Product> product(const Editor& editor, TensorId t) {
  if (!binary(editor, t, BinaryKind::mul)) return std::nullopt;
  const OperationId id = editor.producer(t);
  TensorId x = editor[id].inputs[0], table = editor[id].inputs[1];
  if (element_count(editor[x].shape) < element_count(editor[table].shape)) std::swap(x, table);
  if (element_count(editor[x].shape) == element_count(editor[table].shape)) return std::nullopt;
  return Product{id, x, table};
}

// y = p + q or p - q.
struct Turn {
  bool difference;
  Product p, q;
};

std::vector<Turn> find_turns(const Editor& editor) {
  std::vector<Turn> turns;
  for (const OperationId id : editor.order()) {
    const auto* op = std::get_if<Binary>(&editor[id].attributes);
    if (!op || (op->kind != BinaryKind::add && op->kind != BinaryKind::sub)) continue;
    const auto p = product(editor, editor[id].inputs[0]), q = product(editor, editor[id].inputs[1]);
    if (p && q) turns.push_back({op->kind == BinaryKind::sub, *p, *q});
  }
  return turns;
}

bool is_other_half(const Turn& sum, const Turn& difference) {
  const auto crossed = [&](const Product& a, const Product& b) {
    return a.x == difference.p.x && a.table == difference.q.table && b.x == difference.q.x &&
           b.table == difference.p.table;
  };
  return difference.difference && !sum.difference && (crossed(sum.p, sum.q) || crossed(sum.q, sum.p));
}

// Turns of the same two parts, whichever comes first.
using TurnsByParts = std::multimap<std::pair<TensorId, TensorId>, const Turn*>;
std::pair<TensorId, TensorId> parts(const Turn& turn) { return std::minmax({turn.p.x, turn.q.x}); }

bool is_rotary(const Editor& editor, const Turn& turn, const TurnsByParts& turns) {
  if (!turn.difference && (is_rotation(editor, turn.p.x, turn.q.x) || is_rotation(editor, turn.q.x, turn.p.x)))
    return true;
  const auto [first, last] = turns.equal_range(parts(turn));
  return std::any_of(first, last, [&](const auto& other) {
    return is_other_half(turn, *other.second) || is_other_half(*other.second, turn);
  });
}

}  // namespace

void rotary_tables(Editor& editor) {
  std::vector<TensorId> pending, stored;
  std::set<std::size_t> operations;  // that read or make the tables
  const std::vector<Turn> turns = find_turns(editor);
  TurnsByParts by_parts;
  for (const Turn& turn : turns) by_parts.emplace(parts(turn), &turn);
  for (const Turn& turn : turns)
    if (is_rotary(editor, turn, by_parts))
      for (const Product& product : {turn.p, turn.q}) {
        pending.push_back(product.table);
        operations.insert(product.operation.index());
      }
  std::set<std::size_t> seen;
  while (!pending.empty()) {
    const TensorId t = pending.back();
    pending.pop_back();
    if (!t.valid() || !seen.insert(t.index()).second) continue;
    if (editor[t].kind == TensorKind::parameter) stored.push_back(t);
    if (editor[t].kind == TensorKind::input && is_floating(editor[t].dtype)) return;  // not of positions
    const OperationId producer = editor.producer(t);
    if (!producer.valid()) continue;
    operations.insert(producer.index());
    pending.insert(pending.end(), editor[producer].inputs.begin(), editor[producer].inputs.end());
  }
  for (const TensorId t : stored) {
    const auto users = editor.consumers(t);
    const bool theirs = std::all_of(users.begin(), users.end(), [&](OperationId user) {
      const TensorId result = editor[user].outputs[0];
      const bool read = !editor.consumers(result).empty() || editor.is_output(result);  // not left over by a rewrite
      return !read || operations.contains(user.index());
    });
    if (theirs) editor.at(t).kind = TensorKind::buffer;
  }
}

}  // namespace sibyl::rewrites
