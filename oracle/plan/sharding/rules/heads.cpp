// Attention over a sequence of which each rank has a part. The ranks exchange their parts of it, with all heads, for
// parts of the heads with all of the sequence; attention is local then, its mask too; and the result goes back (Jacobs
// et al., "DeepSpeed Ulysses", 2023). Each of q, k, v and the result is one all-to-all forward and one backward.
//
// Or a rank keeps its queries, and is given all keys and values: an all-gather each forward, a reduce-scatter backward
// (Llama Team, "The Llama 3 herd of models", 2024, section 3.3.2). Any number of heads will do.
//
// Or keys and values come round, a part at a time, while it computes with the part before (Liu et al., "Ring attention
// with blockwise transformers for near-infinite context", 2023): as many bytes, and twice that backward, behind the
// computation, and no rank has all of them.
#include "oracle/plan/sharding/rules/rules.h"
#include "oracle/plan/sharding/tokens.h"

namespace sibyl::sharding {
namespace {

// Adds the way back to a variant whose local operation makes a part of the heads: the result is split along its rows.
Variant returned(Variant variant, const Operands& o, std::size_t heads) {
  const Shape& whole = o.outputs.at(0);
  const Layout of_heads = Layout::split(heads), of_rows = Layout::split(whole.size() - 2);
  if (!divides(whole, of_heads, o.ways) || !divides(whole, of_rows, o.ways)) return variant;
  return exchanged(std::move(variant), whole, of_heads, of_rows, o.ways);
}

}  // namespace

Variants by_heads(const Attention& op, const Operands& o) {
  const auto heads = heads_dim(o.inputs.at(0), o.inputs.at(1));
  if (!heads) return {};
  Variant variant{{split(*heads), split(*heads), split(*heads)}, {Layout::split(*heads)}, op};
  if (o.has(3)) {
    const Shape& mask = o.inputs[3];
    const std::size_t missing = 4 - mask.size();
    const bool spans = *heads >= missing && mask[*heads - missing] == o.outputs.at(0)[*heads];
    variant.inputs.push_back(spans ? split(*heads - missing) : shared());
  }
  return {returned(std::move(variant), o, *heads)};
}

Variants scores_by_heads(const MatMul& op, const Operands& o) {
  const auto heads = heads_dim(o.inputs.at(0), o.inputs.at(1));
  if (!heads) return {};
  return {Variant{{split(*heads), split(*heads)}, {Layout::split(*heads)}, op}};
}

namespace {

std::size_t rows_of(const Shape& matrices) { return matrices.size() - 2; }

bool arrives_by_rows(const Operands& o) {
  const Layout* queries = o.split(0);
  return queries != nullptr && queries->is_split(rows_of(o.inputs[0])) && queries->pieces.empty() &&
         queries->surplus == 0;
}

Variants mix_by_heads(const MatMul& op, const Operands& o) {
  const auto heads = heads_dim(o.inputs.at(0), o.inputs.at(1));
  if (!heads) return {};
  return {returned(Variant{{split(*heads), split(*heads)}, {Layout::split(*heads)}, op}, o, *heads)};
}

// One product of the two: the left one's rows stay where they are.
Variants by_rows(const MatMul& op, const Operands& o) {
  if (!arrives_by_rows(o)) return {};
  return {Variant{{split(rows_of(o.inputs[0])), shared()}, {Layout::split(rows_of(o.outputs.at(0)))}, op}};
}

}  // namespace

// Which keys a causal query may see depends on its place, and so on the rank (trainer/replica.cpp); in the plan it is
// that of the last rank's, which see most.
Variants by_keys(const Attention& op, const Operands& o) {
  if (!arrives_by_rows(o)) return {};
  const std::size_t rows = rows_of(o.inputs[0]);
  Variant variant{{split(rows), shared(), shared()}, {Layout::split(rows)}, op};
  if (o.has(3)) {
    const Shape& mask = o.inputs[3];
    const bool spans = mask.size() >= 2 && mask[rows_of(mask)] == o.inputs[0][rows];
    variant.inputs.push_back(spans ? split(rows_of(mask)) : shared());
  }
  return {variant};
}

// Of attention of a sequence to itself, without a mask of its own.
Variants by_ring(const Attention& op, const Operands& o) {
  const std::size_t rows = rows_of(o.inputs.at(0));
  if (!arrives_by_rows(o) || o.has(3) || o.inputs[0][rows] != o.inputs[1][rows]) return {};
  Attention local = op;
  local.ring = o.ways;
  const Layout parts = Layout::split(rows);
  Variant variant{{as(parts), as(parts), as(parts)}, {parts}, local};
  Conversion round;
  round.forward.motion = Motion::pass_round, round.backward.motion = Motion::sum_round;
  round.forward.dim = round.backward.dim = rows;
  round.forward.ranks = round.backward.ranks = static_cast<int>(o.ways);
  variant.program = [local, parts, round, y = part_of(o.outputs.at(0), parts, o.ways)](
                        Emitter& emit, const std::vector<LocalTensorId>& in) {
    const LocalTensorId keys = emit.exchange(in[1], round, round.forward.ranks);
    const LocalTensorId values = emit.exchange(in[2], round, round.forward.ranks);
    for (const LocalTensorId part : {keys, values}) emit.mark(part, parts);
    const LocalTensorId made = emit.compute(local, {in[0], keys, values}, y);
    emit.mark(made, parts);
    return std::vector{made};
  };
  return {variant};
}

Variants scores_by_keys(const MatMul& op, const Operands& o) { return by_rows(op, o); }

Variants mix_as_scores(const MatMul& op, const Operands& o) {
  return arrives_by_rows(o) ? by_rows(op, o) : mix_by_heads(op, o);
}

}  // namespace sibyl::sharding
