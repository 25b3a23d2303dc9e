#include <algorithm>

#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {

// A dimension that is summed away leaves summands.
Variants variants(const Reduce& op, const Operands& o) {
  const auto rank = static_cast<std::int64_t>(o.inputs.at(0).size());
  std::vector<bool> reduced(o.inputs[0].size(), op.axes.empty());
  for (const std::int64_t axis : op.axes) reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    if (reduced[layout.dim]) {
      if (op.kind != ReduceKind::sum && op.kind != ReduceKind::mean) return std::nullopt;
      Variant v{{{layout, false, {}}}, {Layout::partial(0)}, op};
      if (op.kind == ReduceKind::mean) v.scale = 1.0 / static_cast<double>(o.ways);
      return v;
    }
    const auto before = static_cast<std::size_t>(
        std::count(reduced.begin(), reduced.begin() + static_cast<std::ptrdiff_t>(layout.dim), true));
    return Variant{
        {{layout, false, {}}}, {Layout::split(op.keep_dims ? layout.dim : layout.dim - before, layout.pieces)}, op};
  });
}

// The mean over equal parts is the mean of their means.
Variants variants(const MeanSquaredError& op, const Operands& o) {
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand != 0) return std::nullopt;
    Variant v{{{layout, false, {}}, {layout, false, {}}}, {Layout::partial(0)}, op};
    v.scale = 1.0 / static_cast<double>(o.ways);
    return v;
  });
}

}  // namespace sibyl::sharding
