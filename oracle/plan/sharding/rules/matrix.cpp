// y = x W + b by columns of W: every rank makes some of y's features from the whole of x. By rows: every rank takes
// some of x's features, and the results are summands (Shoeybi et al., "Megatron-LM", 2019, section 3).
#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {
namespace {

Variant with_bias(Variant variant, bool present, Need bias) {
  if (present) variant.inputs.push_back(std::move(bias));
  return variant;
}

// As one dimension. Classes are rounded up where the weight is cut so, or may still be.
Layout columns_of(const Operands& o, std::int64_t extent) {
  const bool held_whole = o.arriving[1] && o.arriving[1]->is_whole();
  if (o.logits && !held_whole) return Layout::rounded_up(0, surplus_of(extent, o.ways));
  return Layout::split(0, o.column_pieces);
}

}  // namespace

Variants variants(const Linear& op, const Operands& o) {
  const std::size_t last = o.inputs.at(0).size() - 1;
  const std::size_t in = op.weight_kn ? 0 : 1, out = 1 - in;
  const bool bias = o.has(2);
  const Layout columns = columns_of(o, o.inputs[1].at(out));
  Variants result;
  result.push_back(
      with_bias({{shared(), as(columns.along(out))}, {columns.along(last)}, op, Cut::columns}, bias, as(columns)));
  const Layout* arriving = o.split(0);
  const Layout features = arriving && arriving->dim == last ? *arriving : Layout::split(last);
  Variant rows{{{features, false, {}}, split(in, features.pieces)}, {Layout::partial(last)}, op, Cut::rows};
  if (bias) rows.late_bias = 2, rows.inputs.push_back(whole());
  result.push_back(std::move(rows));
  if (arriving && arriving->dim != last)
    result.push_back(with_bias({{{*arriving, false, {}}, shared()}, {*arriving}, op, Cut::along}, bias, shared()));
  return result;
}

// Batches may be split, a's rows, b's columns, or the dimension they are contracted over.
Variants variants(const MatMul& op, const Operands& o) {
  const std::size_t rank = o.outputs.at(0).size();
  if (o.inputs.at(0).size() < 2 || o.inputs.at(1).size() < 2 || rank < 2) return {};
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    const Shape& shape = o.inputs[operand];
    const std::size_t from_end = shape.size() - layout.dim;  // 2: rows, 1: columns
    const std::size_t other_rank = o.inputs[1 - operand].size();
    Variant variant{{whole(), whole()}, {Layout::split(rank - from_end, layout.pieces)}, op};
    variant.inputs[operand] = {layout, false, {}};
    Need& other = variant.inputs[1 - operand];
    if (from_end > 2) {
      const bool spans = other_rank >= from_end && o.inputs[1 - operand][other_rank - from_end] == shape[layout.dim];
      other = spans ? split(other_rank - from_end, layout.pieces) : shared();
    } else if (from_end == (operand == 0 ? 2U : 1U)) {
      other = shared();
    } else {
      other = split(other_rank - (operand == 0 ? 2 : 1), layout.pieces);
      variant.outputs = {Layout::partial(rank - 1)};
    }
    return variant;
  });
}

// Heads and samples are independent. Queries may be split against whole keys and values, unless which keys they may see
// depends on their place.
Variants variants(const Attention& op, const Operands& o) {
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand > 2 || !layout.pieces.empty()) return std::nullopt;
    Variant variant{{split(layout.dim), split(layout.dim), split(layout.dim)}, {Layout::split(layout.dim)}, op};
    if (layout.dim == 2 && operand == 0 && !op.causal)
      variant.inputs[1] = variant.inputs[2] = shared();
    else if (layout.dim > 1)
      return std::nullopt;
    if (o.has(3)) {
      const Shape& mask = o.inputs[3];
      const std::size_t missing = 4 - mask.size();
      const bool spans = layout.dim >= missing && mask[layout.dim - missing] == o.outputs.at(0)[layout.dim];
      variant.inputs.push_back(spans ? split(layout.dim - missing) : shared());
    }
    return variant;
  });
}

}  // namespace sibyl::sharding
