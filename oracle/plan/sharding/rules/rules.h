// The rules of sharding, one for each operation: the variants in which ranks can share its work.
//
// A rule follows what arrives: an operation without weights has one variant for each way in which an operand comes
// split. Only a multiplication by a weight, and a window over an image, have variants of their own. A rule need not
// check that extents divide; shard() drops variants that do not.
//
// A rule stands in the operation's own file (models/operations/README.md), or in a file here and is declared below.
#pragma once

#include <functional>
#include <optional>

#include "oracle/plan/sharding/variant.h"

namespace sibyl::sharding {

using Variants = std::vector<Variant>;

inline constexpr std::size_t channels = 1;  // the dimension along which an image has them

Variants variants(const Convolution& op, const Operands& o);
Variants variants(const Linear& op, const Operands& o);
Variants variants(const MatMul& op, const Operands& o);
Variants variants(const Attention& op, const Operands& o);
Variants variants(const Normalization& op, const Operands& o);
Variants variants(const Pool& op, const Operands& o);
Variants variants(const Unary& op, const Operands& o);
Variants variants(const Binary& op, const Operands& o);
Variants variants(const Where& op, const Operands& o);
Variants variants(const Softmax& op, const Operands& o);
Variants variants(const Dropout& op, const Operands& o);
Variants variants(const Embedding& op, const Operands& o);
Variants variants(const Reduce& op, const Operands& o);
Variants variants(const Reshape& op, const Operands& o);
Variants variants(const Transpose& op, const Operands& o);
Variants variants(const Concat& op, const Operands& o);
Variants variants(const Slice& op, const Operands& o);
Variants variants(const Split& op, const Operands& o);
Variants variants(const Gather& op, const Operands& o);
Variants variants(const Pad& op, const Operands& o);
Variants variants(const Expand& op, const Operands& o);
Variants variants(const Resize& op, const Operands& o);
Variants variants(const Cast& op, const Operands& o);
Variants variants(const Copy& op, const Operands& o);
Variants variants(const LocalResponseNorm& op, const Operands& o);
Variants variants(const CrossEntropy& op, const Operands& o);
Variants variants(const MeanSquaredError& op, const Operands& o);
Variants variants(const ClassStatistics& op, const Operands& o);
Variants variants(const NormStatistics& op, const Operands& o);
Variants variants(const ApplyNorm& op, const Operands& o);
Variants variants(const OptimizerUpdate& op, const Operands& o);
Variants variants(const TopK& op, const Operands& o);
Variants variants(const Dispatch& op, const Operands& o);
Variants variants(const Combine& op, const Operands& o);
Variants variants(const GroupedLinear& op, const Operands& o);

// The sum over a bag of what was looked up in a rank's own columns; none: it arrived otherwise (vocabulary.cpp).
std::optional<Variant> bag_by_features(const Reduce& op, const Operands& o);

// Attention over a sequence of which ranks have a part each (heads.cpp), by parts of its heads, with all of its keys or
// in a ring: of each there is one variant, or none.
Variants by_heads(const Attention& op, const Operands& o);
Variants by_keys(const Attention& op, const Operands& o);
Variants by_ring(const Attention& op, const Operands& o);
// The same of one that is taken apart: the product of queries with keys, and that of probabilities with values, which
// goes on as the scores were shared.
Variants scores_by_heads(const MatMul& op, const Operands& o);
Variants scores_by_keys(const MatMul& op, const Operands& o);
Variants mix_as_scores(const MatMul& op, const Operands& o);

// What rules share.

// Whole, and each rank's gradient of it is a summand.
inline Need shared() { return {Layout::whole(), true, {}}; }
inline Need whole() { return {}; }
inline Need split(std::size_t dim, Ints pieces = {}) { return {Layout::split(dim, std::move(pieces)), false, {}}; }
inline Need as(Layout layout) { return {std::move(layout), false, {}}; }

// One variant for each operand that arrives split, made by `make(operand, layout)`, which may decline. Those that
// arrive rounded up are followed only where what lies beyond the end does no harm.
enum class RoundedUp { declined, followed };
Variants follow(const Operands& o, const std::function<std::optional<Variant>(std::size_t, const Layout&)>& make,
                RoundedUp rounded_up = RoundedUp::declined);

// Elementwise with numpy's broadcasting: wherever an operand is split the result is, and so is every operand of that
// extent.
Variants elementwise(const Attributes& op, const Operands& o);

// The variant, whose local operation makes its result `made` of the `whole`, with what brings that to `wanted` behind
// it.
Variant exchanged(Variant variant, const Shape& whole, const Layout& made, const Layout& wanted, std::int64_t ranks);

// One operand, one result of the same dimensions; any dimension may be split for which `free(dim)`.
Variants dimensionwise(const Attributes& op, const Operands& o, const std::function<bool(std::size_t)>& free);

// The same of several operands, of which each is split where any is, and has the result's extent there.
Variants alongside(const Attributes& op, const Operands& o, const std::function<bool(std::size_t)>& free);

// Of an operation with a file of its own: along the dimensions that it names; none, and it is never split.
template <class Op>
requires(Op::own_file) Variants variants([[maybe_unused]] const Op& op, [[maybe_unused]] const Operands& o) {
  if constexpr (requires { op.independent_along(std::size_t{}); })
    return alongside(op, o, [&](std::size_t dim) { return op.independent_along(dim); });
  else
    return {};
}

// Where a reshape takes dimension `dim`, if ranks can have a part each of it before and after.
std::optional<std::size_t> reshaped_dim(const Shape& from, const Shape& to, std::size_t dim);

// A window over dimension `dim` of an image: what a rank needs beside its own rows so that it makes its own part of the
// results. None where the parts do not line up, or a neighbour has too few rows.
struct Window {
  std::int64_t kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
};
std::optional<Halo> halo_of(const Window& window, std::int64_t input, std::int64_t output, std::int64_t ways,
                            double fill);
// The same of a transposed convolution; what lies beyond the image's rim is 0.
std::optional<Halo> halo_of_transposed(const Window& window, std::int64_t input, std::int64_t output,
                                       std::int64_t ways);

}  // namespace sibyl::sharding
