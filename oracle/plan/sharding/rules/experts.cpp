// A mixture of experts. Samples may be split: groups of tokens know nothing of each other, and each has its own slots,
// so that the slots [E, C, H] of a part of the samples are a part of C. Experts may be: of slots and weights each rank
// has some experts' alone. Between the two lies an all-to-all: the slots' split goes from C to E and back (Lepikhin et
// al., "GShard", 2020). And an expert's layers may be cut by columns and rows as any (Megatron-LM).
#include <algorithm>

#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {
namespace {

constexpr std::size_t token_axis = 0, features = 1;   // of tokens [T, H]
constexpr std::size_t experts = 0, slots = 1, width = 2;  // of slots [E, C, H]

// Whole groups on every rank.
bool by_groups(const Layout& layout, std::size_t dim, const Operands& o, std::int64_t all, std::int64_t tokens) {
  return layout.dim == dim && layout.pieces.empty() && all % o.ways == 0 && all / o.ways % tokens == 0;
}

// Of every group a part on each rank: of sequences that ranks share. A part is then a group by itself, with its share
// of the slots, as Megatron-LM's ranks of context and of sequence parallelism choose by themselves. Where `arriving`
// has a group in several pieces, of each of which a rank has its part, its slots are in as many.
struct PartsOfGroups {
  Layout tokens, slots;
};
template <class Op>
std::optional<PartsOfGroups> parts_of_groups(const Op& op, const Operands& o, std::int64_t tokens,
                                             const Layout& arriving) {
  if (!o.tokens || arriving.dim > 1) return std::nullopt;
  const std::int64_t groups = tokens / op.tokens;
  const auto all = static_cast<std::int64_t>(std::max<std::size_t>(1, arriving.pieces.size()));
  if (all % groups != 0 || op.tokens % (all / groups * o.ways) != 0 || op.capacity % (all / groups * o.ways) != 0)
    return std::nullopt;
  const auto parts = [&](std::size_t dim, std::int64_t of_a_group) {
    return Layout::split(dim, all > 1 ? Ints(static_cast<std::size_t>(all), of_a_group / (all / groups)) : Ints{});
  };
  return PartsOfGroups{parts(token_axis, op.tokens), parts(slots, op.capacity)};
}

Variant by_rows(const GroupedLinear& op, const Operands& o, std::size_t in) {
  const Layout* arriving = o.split(0);
  const Layout cut = arriving && arriving->dim == width ? *arriving : Layout::split(width);
  Variant v{{as(cut), split(in, cut.pieces)}, {Layout::partial(width)}, op, Cut::rows};
  if (!o.has(2)) return v;
  // One bias of each expert is added to the sum.
  const Shape sum = o.outputs[0], column = {sum[experts], 1, sum[width]};
  v.inputs.push_back(whole());
  v.outputs = {Layout::whole()};
  v.sent =
      2.0 * static_cast<double>(o.ways - 1) / static_cast<double>(o.ways) * static_cast<double>(element_count(sum));
  v.program = [op, sum, column](Emitter& emit, const std::vector<LocalTensorId>& operands) {
    LocalTensorId y = emit.compute(op, {operands[0], operands[1]}, sum);
    y = emit.exchange(y, Motion::all_reduce, Motion::none);
    const LocalTensorId bias = emit.compute(Reshape{}, {operands[2]}, column);
    return std::vector{emit.compute(Binary{BinaryKind::add}, {y, bias}, sum)};
  };
  return v;
}

}  // namespace

Variants variants(const TopK& op, const Operands& o) {
  return follow(o, [&](std::size_t, const Layout& layout) -> std::optional<Variant> {
    if (layout.dim + 1 == o.inputs[0].size()) return std::nullopt;
    return Variant{{as(layout)}, {layout, layout}, op};
  });
}

// Which features a rank has of a token does not matter to where the token goes.
Variants variants(const Dispatch& op, const Operands& o) {
  const std::int64_t tokens = o.inputs.at(0).at(token_axis);
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (by_groups(layout, token_axis, o, tokens, op.tokens))
      return Variant{{split(token_axis), split(token_axis)}, {Layout::split(slots), Layout::split(token_axis)}, op};
    if (const auto parts = parts_of_groups(op, o, tokens, layout); parts && layout == parts->tokens)
      return Variant{{as(parts->tokens), as(parts->tokens)},
                     {parts->slots, parts->tokens},
                     Dispatch{op.tokens / o.ways, op.capacity / o.ways}};
    if (operand != 0 || layout.dim != features) return std::nullopt;
    return Variant{{as(layout), whole()}, {layout.along(width), Layout::whole()}, op};
  });
}

// Of some features a rank makes a summand of the gradient of a weight.
Variants variants(const Combine& op, const Operands& o) {
  const std::int64_t tokens = o.inputs.at(1).at(token_axis);
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (by_groups(layout, operand == 0 ? slots : token_axis, o, tokens, op.tokens))
      return Variant{{split(slots), split(token_axis), split(token_axis)}, {Layout::split(token_axis)}, op};
    if (const auto parts = parts_of_groups(op, o, tokens, layout);
        parts && layout == (operand == 0 ? parts->slots : parts->tokens))
      return Variant{{as(parts->slots), as(parts->tokens), as(parts->tokens)},
                     {parts->tokens},
                     Combine{op.tokens / o.ways, op.capacity / o.ways}};
    if (operand != 0 || layout.dim != width) return std::nullopt;
    return Variant{{as(layout), whole(), shared()}, {layout.along(features)}, op};
  });
}

Variants variants(const GroupedLinear& op, const Operands& o) {
  const std::size_t in = op.weight_kn ? 1 : 2, out = 3 - in;
  const auto with_bias = [&](Variant v, Need bias) {
    if (o.has(2)) v.inputs.push_back(std::move(bias));
    return v;
  };
  const Layout columns = Layout::split(1, o.column_pieces);  // of a bias [E, N]
  Variants result;
  result.push_back(
      with_bias({{split(experts), split(experts)}, {Layout::split(experts)}, op, Cut::experts}, split(experts)));
  result.push_back(
      with_bias({{shared(), as(columns.along(out))}, {columns.along(width)}, op, Cut::columns}, as(columns)));
  result.push_back(by_rows(op, o, in));
  if (const Layout* arriving = o.split(0); arriving && arriving->dim == slots)
    result.push_back(with_bias({{as(*arriving), shared()}, {*arriving}, op, Cut::along}, shared()));
  return result;
}

}  // namespace sibyl::sharding
