// Statistics are taken over some dimensions; the others may be split. Batch-norm's are taken over each rank's own part
// of the batch and of the image, as replicas take theirs; synchronised ones (plan/synchronised_norms.h) over all parts.
// Those of an instance or group norm are a sample's own, whatever replicas do, and are taken over all of its image.
#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {
namespace {

constexpr std::size_t samples = 0;

Variant with_operands(const Normalization& op, const Operands& o, const Layout& x, const Need& per_channel) {
  Variant v{{{x, false, {}}}, {x}, op};
  for (std::size_t i = 1; i < o.inputs.size(); ++i) v.inputs.push_back(per_channel);
  return v;
}

// How many of the groups of channels a rank has with its part of the channels; nothing where it would have parts of
// groups.
std::optional<std::int64_t> own_groups(std::int64_t groups, const Operands& o, const Layout& layout) {
  const bool of_one_channel = groups == 0 || groups == o.inputs[0][channels];
  if (groups % o.ways != 0 || (!of_one_channel && !layout.pieces.empty())) return std::nullopt;
  return groups / o.ways;
}

// Each rank's statistics of its own part, their mean, and the norm by that: two numbers for each group of each sample
// are summed forward, and their gradients backward.
Variant over_parts(const Normalization& op, std::int64_t groups, const Operands& o, const Layout& layout) {
  const Shape statistics = {2, o.inputs[0][samples], groups}, part = part_of(o.inputs[0], layout, o.ways);
  const ApplyNorm apply{.groups = groups, .parts = o.ways, .epsilon = op.epsilon, .momentum = op.momentum};
  const auto ways = static_cast<int>(o.ways);
  Variant v = with_operands(op, o, layout, shared());
  v.sent = 2 * elements_sent({Motion::all_reduce, 0, 0, {}, {}, {}}, statistics, statistics, ways);
  v.program = [=](Emitter& emit, const std::vector<LocalTensorId>& in) {
    const LocalTensorId own = emit.compute(NormStatistics{groups}, {in[0]}, statistics);
    std::vector<LocalTensorId> operands = in;
    operands.insert(operands.begin() + 1, emit.mean(own, ways));
    const LocalTensorId y = emit.compute(apply, operands, part);
    emit.mark(y, layout);
    return std::vector{y};
  };
  return v;
}

}  // namespace

// The mean over equal parts is the mean of their means. Statistics are [2, C], or [2, N, groups].
Variants variants(const NormStatistics& op, const Operands& o) {
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    if (layout.dim == channels) {
      const std::optional<std::int64_t> groups = own_groups(op.groups, o, layout);
      if (!groups) return std::nullopt;
      return Variant{{as(layout)}, {layout.along(o.outputs[0].size() - 1)}, NormStatistics{*groups}};
    }
    if (layout.dim == samples && op.groups > 0) return Variant{{as(layout)}, {layout.along(1)}, op};
    Variant v{{as(layout)}, {Layout::partial(channels)}, op};
    v.scale = 1.0 / static_cast<double>(o.ways);
    return v;
  });
}

Variants variants(const ApplyNorm& op, const Operands& o) {
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand != 0) return std::nullopt;
    ApplyNorm local = op;
    Need statistics = shared(), per_channel = shared();
    if (layout.dim == channels) {
      const std::optional<std::int64_t> groups = own_groups(op.groups, o, layout);
      if (!groups) return std::nullopt;
      local.groups = *groups;
      statistics = as(layout.along(o.inputs[1].size() - 1));
      per_channel = as(layout.along(0));
    } else if (layout.dim == samples && op.groups > 0) {
      statistics = as(layout.along(1));
    } else {
      local.parts *= o.ways;
    }
    Variant v{{as(layout), statistics}, {layout}, local};
    v.inputs.resize(o.inputs.size(), per_channel);
    return v;
  });
}

Variants variants(const Normalization& op, const Operands& o) {
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand != 0) return std::nullopt;
    const bool channel = layout.dim == channels;
    switch (op.kind) {
      case NormalizationKind::batch: return with_operands(op, o, layout, channel ? split(0, layout.pieces) : shared());
      case NormalizationKind::layer:
      case NormalizationKind::rms:
        if (layout.dim + static_cast<std::size_t>(op.axes) >= o.inputs[0].size()) return std::nullopt;
        return with_operands(op, o, layout, shared());
      case NormalizationKind::instance:
      case NormalizationKind::group: {
        const bool instance = op.kind == NormalizationKind::instance;
        const std::int64_t groups = instance ? o.inputs[0][channels] : op.groups;
        if (layout.dim == samples) return with_operands(op, o, layout, shared());
        if (!channel) return over_parts(op, groups, o, layout);
        const std::optional<std::int64_t> own = own_groups(groups, o, layout);
        if (!own) return std::nullopt;
        Normalization local = op;
        if (!instance) local.groups = *own;
        return with_operands(local, o, layout, split(0, layout.pieces));
      }
    }
    return std::nullopt;
  });
}

}  // namespace sibyl::sharding
