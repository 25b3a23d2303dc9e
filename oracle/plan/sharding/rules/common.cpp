#include <algorithm>

#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {

Variants follow(const Operands& o, const std::function<std::optional<Variant>(std::size_t, const Layout&)>& make,
                RoundedUp rounded_up) {
  Variants result;
  std::vector<std::vector<Layout>> known;
  for (std::size_t i = 0; i < o.inputs.size(); ++i) {
    const Layout* arriving = o.split(i);
    if (!arriving || (arriving->surplus > 0 && rounded_up == RoundedUp::declined)) continue;
    std::optional<Variant> variant = make(i, *arriving);
    if (!variant || std::find(known.begin(), known.end(), variant->outputs) != known.end()) continue;
    known.push_back(variant->outputs);
    result.push_back(std::move(*variant));
  }
  return result;
}

Variant exchanged(Variant variant, const Shape& whole, const Layout& made, const Layout& wanted, std::int64_t ranks) {
  const int ways = static_cast<int>(ranks);
  const Shape local = part_of(whole, made, ranks);
  const std::vector<Conversion> conversions = convert(made, as(wanted), true);
  for (const Conversion& c : conversions)
    variant.sent += elements_sent(c.forward, local, part_of(whole, wanted, ranks), ways) * 2;
  variant.outputs = {wanted};
  variant.program = [op = variant.attributes, local, made, wanted, conversions, ways](
                        Emitter& emit, const std::vector<LocalTensorId>& in) {
    LocalTensorId y = emit.compute(op, in, local);
    emit.mark(y, made);
    for (const Conversion& conversion : conversions) y = emit.exchange(y, conversion, ways);
    emit.mark(y, wanted);
    return std::vector{y};
  };
  return variant;
}

Variants elementwise(const Attributes& op, const Operands& o) {
  const Shape& result = o.outputs.at(0);
  const auto make = [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    const std::size_t dim = layout.dim + result.size() - o.inputs[operand].size();
    if (o.inputs[operand][layout.dim] != result[dim]) return std::nullopt;
    Variant variant{{}, {layout.along(dim)}, op};
    for (const Shape& shape : o.inputs) {
      const std::size_t missing = result.size() - shape.size();
      const bool spans = dim >= missing && shape[dim - missing] == result[dim];
      variant.inputs.push_back(spans ? as(layout.along(dim - missing)) : shared());
    }
    return variant;
  };
  return follow(o, make, RoundedUp::followed);
}

Variants dimensionwise(const Attributes& op, const Operands& o, const std::function<bool(std::size_t)>& free) {
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand != 0 || !free(layout.dim)) return std::nullopt;
    return Variant{{{layout, false, {}}}, {layout}, op};
  });
}

Variants alongside(const Attributes& op, const Operands& o, const std::function<bool(std::size_t)>& free) {
  const Shape& result = o.outputs.at(0);
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    const auto has_it = [&](const Shape& shape) {
      return shape.size() == result.size() && shape[layout.dim] == result[layout.dim];
    };
    if (!free(layout.dim) || !std::all_of(o.inputs.begin(), o.inputs.end(), has_it)) return std::nullopt;
    return Variant{std::vector<Need>(o.inputs.size(), as(layout)), {layout}, op};
  });
}

// Rank r makes results [r n, (r + 1) n) of `output` = ways n. The first needs rows from r n stride - pad_begin; the
// last rows to ((r + 1) n - 1) stride - pad_begin + (kernel - 1) dilation. The own rows are [r m, (r + 1) m) of `input`
// = ways m, so with m = n stride the surplus is the same for all r: pad_begin before, (kernel - 1) dilation + 1 -
// stride - pad_begin after.
std::optional<Halo> halo_of(const Window& w, std::int64_t input, std::int64_t output, std::int64_t ways, double fill) {
  if (output <= 0 || output % ways != 0 || input != output * w.stride) return std::nullopt;
  const std::int64_t after = (w.kernel - 1) * w.dilation + 1 - w.stride - w.pad_begin;
  const Halo halo{w.pad_begin, std::max<std::int64_t>(0, after), fill};
  const std::int64_t own = input / ways;
  if (halo.before > own || halo.after > own) return std::nullopt;
  return halo.empty() ? Halo{} : halo;
}

// Row i of the input reaches results i stride - pad_begin + t dilation, 0 <= t < kernel. Rank r makes results [r n, (r
// + 1) n) of `output` = ways n and has rows [r m, (r + 1) m) of `input` = ways m, with n = m stride. The first result
// is reached by rows from r m - floor(((kernel - 1) dilation - pad_begin) / stride), the last by rows to (r + 1) m - 1
// + ceil(pad_begin / stride).
std::optional<Halo> halo_of_transposed(const Window& w, std::int64_t input, std::int64_t output, std::int64_t ways) {
  if (input <= 0 || input % ways != 0 || output != input * w.stride) return std::nullopt;
  const std::int64_t reach = (w.kernel - 1) * w.dilation - w.pad_begin;
  const Halo halo{std::max<std::int64_t>(0, reach) / w.stride, (w.pad_begin + w.stride - 1) / w.stride};
  const std::int64_t own = input / ways;
  if (halo.before > own || halo.after > own) return std::nullopt;
  return halo;
}

}  // namespace sibyl::sharding
