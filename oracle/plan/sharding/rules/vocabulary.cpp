// Tables and losses over classes. The two ends of a language model are shared by its vocabulary (Shoeybi et al.,
// "Megatron-LM", 2019, section 3): every rank holds some of the words, looks up and scores those, and what all scores
// together are needed for is summed over ranks, so that no rank ever has the logits of all words.
#include <limits>
#include <numeric>

#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {
namespace {

// A rank's own words are looked up; of the others it has rows of zeros.
Variant by_rows(const Operands& o) {
  const Shape& table = o.inputs.at(0);
  const Layout rows = Layout::rounded_up(0, surplus_of(table.at(0), o.ways));
  Variant v{{as(rows), whole()}, {Layout::partial(o.outputs.at(0).size() - 1)}, Embedding{true}, Cut::table};
  v.inputs[1].numbers_of = part_of(table, rows, o.ways)[0];
  return v;
}

// Ids are split: each rank looks up those of all ranks in its columns of the table, and each is given what belongs to
// its own. (So are tables of recommendation models dealt out: no rank has more than another, however many rows a table
// has.) Of a bag it is the sums that are given.
Variant by_features(const Embedding& op, const Operands& o, const Layout& ids) {
  const Shape& looked_up = o.outputs.at(0);
  const Variant v{{split(1), whole()}, {Layout::split(looked_up.size() - 1)}, op, Cut::features};
  return o.bag ? v : exchanged(v, looked_up, Layout::split(looked_up.size() - 1), ids, o.ways);
}

// With m the greatest logit of a token, s the sum of exp(z - m) over classes and t the target's z - m, the loss is the
// mean of log s - t: of m, s and t, one number a token each, every rank knows a part. Backward, exp(z - m) and the
// gradients of s and t are all a rank needs for those of its own logits: nothing is sent.
Variant by_classes(const CrossEntropy& op, const Operands& o, const Layout& layout) {
  const std::size_t classes = layout.dim;
  const Shape tokens = o.inputs.at(1);
  Variant v{{as(layout), whole()}, {Layout::whole()}, op};
  if (layout.surplus > 0) v.inputs[0].beyond = -std::numeric_limits<double>::infinity();
  v.inputs[1].numbers_of = part_of(o.inputs[0], layout, o.ways)[classes];
  const double messages = 3;
  v.sent = messages * 2 * static_cast<double>(o.ways - 1) / static_cast<double>(o.ways) *
           static_cast<double>(element_count(tokens));
  v.program = [classes, tokens](Emitter& emit, const std::vector<LocalTensorId>& in) {
    const auto axis = static_cast<std::int64_t>(classes);
    LocalTensorId greatest = emit.compute(Reduce{ReduceKind::max, {axis}, false}, {in[0]}, tokens, false);
    greatest = emit.exchange(greatest, Motion::maximum, Motion::none);
    const std::vector<LocalTensorId> parts =
        emit.compute(ClassStatistics{axis}, {in[0], in[1], greatest}, {tokens, tokens});
    const LocalTensorId sum = emit.exchange(parts[0], Motion::all_reduce, Motion::none);
    const LocalTensorId target = emit.exchange(parts[1], Motion::all_reduce, Motion::none);
    const LocalTensorId log = emit.compute(Unary{UnaryKind::log}, {sum}, tokens);
    const LocalTensorId losses = emit.compute(Binary{BinaryKind::sub}, {log, target}, tokens);
    Ints all(tokens.size());
    std::iota(all.begin(), all.end(), 0);
    return std::vector{emit.compute(Reduce{ReduceKind::mean, all, false}, {losses}, Shape{})};
  };
  return v;
}

}  // namespace

// Ids may be split, or the rows of the table. (Its columns would be gathered at once by what follows.)
Variants variants(const Embedding& op, const Operands& o) {
  Variants result = follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand != 1) return std::nullopt;
    return Variant{{shared(), {layout, false, {}}}, {layout}, op, Cut::along};
  });
  if (o.table) result.push_back(by_rows(o));
  if (const Layout* ids = o.split(1); ids && o.inputs.at(0).at(1) % o.ways == 0)
    result.push_back(by_features(op, o, *ids));
  return result;
}

std::optional<Variant> bag_by_features(const Reduce& op, const Operands& o) {
  const Shape& sums = o.outputs.at(0);
  const Layout* arriving = o.split(0);
  const Layout samples = Layout::split(0);
  if (arriving->dim + 1 != o.inputs.at(0).size() || !divides(sums, samples, o.ways)) return std::nullopt;
  return exchanged(Variant{{as(*arriving)}, {}, op}, sums, Layout::split(sums.size() - 1), samples, o.ways);
}

// The mean over equal parts is the mean of their means.
Variants variants(const CrossEntropy& op, const Operands& o) {
  const auto classes = static_cast<std::size_t>(op.class_axis);
  const auto make = [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand != 0) return std::nullopt;
    if (layout.dim == classes) return layout.pieces.empty() ? std::optional(by_classes(op, o, layout)) : std::nullopt;
    if (layout.surplus > 0) return std::nullopt;
    Variant v{{{layout, false, {}}, split(layout.dim < classes ? layout.dim : layout.dim - 1, layout.pieces)},
              {Layout::partial(0)},
              op};
    v.scale = 1.0 / static_cast<double>(o.ways);
    return v;
  };
  return follow(o, make, RoundedUp::followed);
}

// Shared as the loss it is a part of; of classes shared again every rank would know too little.
Variants variants(const ClassStatistics& op, const Operands& o) {
  const auto classes = static_cast<std::size_t>(op.class_axis);
  return follow(o, [&](std::size_t operand, const Layout& layout) -> std::optional<Variant> {
    if (operand != 0 || layout.dim == classes) return std::nullopt;
    const Layout tokens = layout.along(layout.dim < classes ? layout.dim : layout.dim - 1);
    return Variant{{as(layout), as(tokens), as(tokens)}, {tokens, tokens}, op};
  });
}

}  // namespace sibyl::sharding
