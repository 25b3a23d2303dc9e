// Operations that compute each element of the result from the elements at its place.
#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {

Variants variants(const Unary& op, const Operands& o) {
  if (op.kind != UnaryKind::prelu || !o.has(1)) return elementwise(op, o);
  // The slope has one entry per channel, or one.
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand != 0) return std::nullopt;
    const bool by_channel = layout.dim == 1 && element_count(o.inputs[1]) > 1;
    if (by_channel && o.inputs[1].front() != o.inputs[0][1]) return std::nullopt;
    return Variant{{{layout, false, {}}, by_channel ? split(0, layout.pieces) : shared()}, {layout}, op};
  });
}

Variants variants(const Binary& op, const Operands& o) { return elementwise(op, o); }
Variants variants(const Where& op, const Operands& o) { return elementwise(op, o); }
Variants variants(const Dropout& op, const Operands& o) { return elementwise(op, o); }
Variants variants(const Cast& op, const Operands& o) { return elementwise(op, o); }
Variants variants(const Copy& op, const Operands& o) { return elementwise(op, o); }
Variants variants(const OptimizerUpdate&, const Operands&) { return {}; }

Variants variants(const Softmax& op, const Operands& o) {
  const auto rank = static_cast<std::int64_t>(o.inputs.at(0).size());
  const std::int64_t axis = op.axis < 0 ? op.axis + rank : op.axis;
  return dimensionwise(op, o, [&](std::size_t dim) { return static_cast<std::int64_t>(dim) != axis; });
}

}  // namespace sibyl::sharding
