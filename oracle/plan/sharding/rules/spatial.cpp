// Operations on images: [N, C, (D), H, W].
#include <limits>

#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {
namespace {

Variants pool_whole_image(const Pool& op, const Operands& o) {
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    Variant v{{{layout, false, {}}}, {layout}, op};
    if (layout.dim < 2) return v;
    if (op.kind != PoolKind::average) return std::nullopt;
    v.outputs = {Layout::partial(1)};
    v.scale = 1.0 / static_cast<double>(o.ways);
    return v;
  });
}

}  // namespace

Variants variants(const Pool& op, const Operands& o) {
  if (op.global) return pool_whole_image(op, o);
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    if (layout.dim < 2) return Variant{{{layout, false, {}}}, {layout}, op};
    const std::size_t i = layout.dim - 2;
    const auto entry = [&](const Ints& list, std::int64_t absent) { return list.empty() ? absent : list[i]; };
    const Window window{op.kernel[i], entry(op.stride, 1), entry(op.dilation, 1), entry(op.pad_begin, 0),
                        entry(op.pad_end, 0)};
    const bool maximum = op.kind == PoolKind::max;
    // The mean of a window that lies partly outside divides by what is inside, which differs from rank to rank.
    if (!maximum && !op.count_include_pad && (window.pad_begin > 0 || window.pad_end > 0)) return std::nullopt;
    const double fill = maximum ? -std::numeric_limits<double>::infinity() : 0.0;
    const auto halo = halo_of(window, o.inputs[0][layout.dim], o.outputs[0][layout.dim], o.ways, fill);
    if (!halo || !layout.pieces.empty()) return std::nullopt;
    Pool local = op;
    if (!local.pad_begin.empty()) local.pad_begin[i] = local.pad_end[i] = 0;
    return Variant{{{layout, false, *halo}}, {layout}, local};
  });
}

Variants variants(const Pad& op, const Operands& o) {
  return dimensionwise(op, o, [&](std::size_t dim) {
    const std::size_t first = o.inputs.at(0).size() - op.begin.size();
    return dim < first || (op.begin[dim - first] == 0 && op.end[dim - first] == 0);
  });
}

// Interpolation reaches over the cut, but the nearest neighbour of a whole multiple does not.
Variants variants(const Resize& op, const Operands& o) {
  const Shape& in = o.inputs.at(0);
  const Shape& out = o.outputs.at(0);
  return dimensionwise(op, o, [&](std::size_t dim) {
    return in[dim] == out[dim] || (op.kind == ResizeKind::nearest && in[dim] > 0 && out[dim] % in[dim] == 0);
  });
}

Variants variants(const LocalResponseNorm& op, const Operands& o) {
  return dimensionwise(op, o, [](std::size_t dim) { return dim != 1; });
}

}  // namespace sibyl::sharding
