// Statistics are taken over some dimensions; the others may be split. Batch-norm's are taken over each rank's own part
// of the batch and of the image, as replicas take theirs; synchronised ones (plan/synchronised_norms.h) over all parts.
#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {
namespace {

Variant with_operands(const Normalization& op, const Operands& o, const Layout& x, const Need& per_channel) {
  Variant v{{{x, false, {}}}, {x}, op};
  for (std::size_t i = 1; i < o.inputs.size(); ++i) v.inputs.push_back(per_channel);
  return v;
}

}  // namespace

// The mean over equal parts is the mean of their means. Statistics are [2, C].
Variants variants(const BatchStatistics& op, const Operands& o) {
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    if (layout.dim == channels) return Variant{{as(layout)}, {layout}, op};
    Variant v{{as(layout)}, {Layout::partial(channels)}, op};
    v.scale = 1.0 / static_cast<double>(o.ways);
    return v;
  });
}

Variants variants(const BatchNormalize& op, const Operands& o) {
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand != 0) return std::nullopt;
    const bool by_channel = layout.dim == channels;
    BatchNormalize local = op;
    if (!by_channel) local.parts *= o.ways;
    Variant v{{as(layout), by_channel ? as(layout) : shared()}, {layout}, local};
    for (std::size_t i = 2; i < o.inputs.size(); ++i) v.inputs.push_back(by_channel ? as(layout.along(0)) : shared());
    return v;
  });
}

Variants variants(const Normalization& op, const Operands& o) {
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand != 0) return std::nullopt;
    const bool channel = layout.dim == 1;
    switch (op.kind) {
      case NormalizationKind::batch: return with_operands(op, o, layout, channel ? split(0, layout.pieces) : shared());
      case NormalizationKind::layer:
      case NormalizationKind::rms:
        if (layout.dim + static_cast<std::size_t>(op.axes) >= o.inputs[0].size()) return std::nullopt;
        return with_operands(op, o, layout, shared());
      case NormalizationKind::instance:
        if (layout.dim > 1) return std::nullopt;
        return with_operands(op, o, layout, channel ? split(0, layout.pieces) : shared());
      case NormalizationKind::group: {
        if (layout.dim > 1 || !layout.pieces.empty()) return std::nullopt;
        if (!channel) return with_operands(op, o, layout, shared());
        if (op.groups % o.ways != 0) return std::nullopt;
        Normalization local = op;
        local.groups /= o.ways;
        return with_operands(local, o, layout, split(0));
      }
    }
    return std::nullopt;
  });
}

}  // namespace sibyl::sharding
