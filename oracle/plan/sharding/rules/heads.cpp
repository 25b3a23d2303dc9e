// Attention over a sequence of which each rank has a part. The ranks exchange their parts of it, with all heads, for
// parts of the heads with all of the sequence; attention is local then, its mask too; and the result goes back (Jacobs
// et al., "DeepSpeed Ulysses", 2023). Each of q, k, v and the result is one all-to-all forward and one backward.
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

Variants mix_by_heads(const MatMul& op, const Operands& o) {
  const auto heads = heads_dim(o.inputs.at(0), o.inputs.at(1));
  if (!heads) return {};
  return {returned(Variant{{split(*heads), split(*heads)}, {Layout::split(*heads)}, op}, o, *heads)};
}

}  // namespace sibyl::sharding
