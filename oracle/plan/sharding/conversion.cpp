#include "oracle/plan/sharding/conversion.h"

#include <algorithm>
#include <array>

namespace sibyl {
namespace {

Transfer along(Motion motion, const Layout& layout) {
  return {motion, layout.dim, 0, layout.pieces, {}, {}, layout.surplus};
}

Conversion layout_change(const Layout& have, const Need& need) {
  const Layout& want = need.layout;
  const Transfer sum{Motion::all_reduce, 0, 0, {}, {}, {}};
  if (want.is_whole()) {
    const Transfer sum_back = need.partial_gradient ? sum : Transfer{};
    if (have.is_whole()) return {{}, sum_back};
    if (have.is_partial()) return {sum, sum_back};
    return {along(Motion::all_gather, have),
            along(need.partial_gradient ? Motion::reduce_scatter : Motion::slice, have)};
  }
  if (have.is_whole()) return {along(Motion::slice, want), along(Motion::all_gather, want)};
  if (have.is_partial()) return {along(Motion::reduce_scatter, want), along(Motion::all_gather, want)};
  return {{Motion::all_to_all, have.dim, want.dim, have.pieces, want.pieces, {}},
          {Motion::all_to_all, want.dim, have.dim, want.pieces, have.pieces, {}}};
}

// What all ranks' parts make together.
Shape rounded_up(const Transfer& transfer, Shape whole) {
  whole[transfer.dim] += transfer.surplus;
  return whole;
}

std::int64_t slab_elements(const Transfer& transfer, const Shape& own) {
  return element_count(own) / own[transfer.dim] * (transfer.halo.before + transfer.halo.after);
}

}  // namespace

std::string_view to_string(Motion motion) {
  constexpr std::array<std::string_view, 13> names = {
      "none",     "slice",   "all-gather",  "all-reduce", "reduce-scatter", "all-to-all", "halo",
      "halo sum", "maximum", "own numbers", "fill",       "pass round",     "sum round"};
  return names[static_cast<std::size_t>(motion)];
}

std::vector<Conversion> convert(const Layout& have, const Need& need, bool gradient) {
  std::vector<Conversion> result;
  const auto add = [&](Conversion conversion) {
    if (!gradient) conversion.backward = {};
    if (conversion.forward != Transfer{} || conversion.backward != Transfer{}) result.push_back(std::move(conversion));
  };
  // Ranks would have to give each other unequal parts.
  const bool unequal = have.is_split() && need.layout.is_split() && have != need.layout &&
                       (need.layout.is_split(have.dim) || have.surplus > 0 || need.layout.surplus > 0);
  if (unequal) {
    add(layout_change(have, {}));
    add(layout_change(Layout::whole(), need));
  } else if (have != need.layout || need.partial_gradient) {
    add(layout_change(have, need));
  }
  if (!need.halo.empty())
    add({{Motion::halo, need.layout.dim, 0, {}, {}, need.halo},
         {Motion::halo_sum, need.layout.dim, 0, {}, {}, need.halo}});
  if (need.numbers_of > 0) add({{Motion::own_numbers, 0, 0, {}, {}, {}, 0, need.numbers_of}, {}});
  if (need.beyond) {
    Transfer fill = along(Motion::fill, need.layout);
    fill.value = *need.beyond;
    add({std::move(fill), {}});
  }
  return result;
}

std::int64_t buffer_elements(const Transfer& transfer, const Shape& input, const Shape& output) {
  switch (transfer.motion) {
    case Motion::none:
    case Motion::slice:
    case Motion::own_numbers:
    case Motion::fill: return 0;
    case Motion::all_reduce:
    case Motion::maximum:
    case Motion::all_to_all: return element_count(input);
    case Motion::reduce_scatter: return element_count(rounded_up(transfer, input));
    case Motion::all_gather: return element_count(rounded_up(transfer, output));
    case Motion::halo: return slab_elements(transfer, input);
    case Motion::halo_sum: return slab_elements(transfer, output);
    case Motion::pass_round: return element_count(input) * transfer.ranks;
    case Motion::sum_round: return 2 * element_count(input) * transfer.ranks;
  }
  return 0;
}

std::int64_t halo_elements_given(const Transfer& transfer, const Shape& input, const Shape& output, int ways) {
  const auto [before, after, fill] = transfer.halo;
  const std::int64_t both = buffer_elements(transfer, input, output);
  if (ways > 2 || before + after == 0) return both;
  return both / (before + after) * std::max(before, after);
}

bool in_a_row(const Transfer& transfer, const Shape& shape) {
  const auto end = shape.begin() + static_cast<std::ptrdiff_t>(transfer.dim);
  return transfer.pieces.empty() && transfer.surplus == 0 &&
         std::all_of(shape.begin(), end, [](std::int64_t extent) { return extent == 1; });
}

bool in_place(const Transfer& transfer) {
  switch (transfer.motion) {
    case Motion::none:
    case Motion::all_reduce:
    case Motion::maximum:
    case Motion::fill:
    case Motion::pass_round:
    case Motion::sum_round: return true;
    default: return false;
  }
}

std::int64_t packing_elements(const Transfer& transfer, const Shape& input, const Shape& output, int ways) {
  const std::int64_t buffer = buffer_elements(transfer, input, output);
  switch (transfer.motion) {
    case Motion::none:
    case Motion::slice:
    case Motion::all_reduce:
    case Motion::maximum:
    case Motion::own_numbers:
    case Motion::fill:
    case Motion::pass_round:
    case Motion::sum_round: return 0;
    case Motion::all_gather:
    case Motion::reduce_scatter: return in_a_row(transfer, input) ? 0 : buffer;
    case Motion::all_to_all: return buffer;  // and as much that is gone when the result is made
    case Motion::halo:
    case Motion::halo_sum: return ways > 2 ? 2 * buffer : buffer;  // given and taken; at the rim half of each
  }
  return 0;
}

double elements_sent(const Transfer& transfer, const Shape& input, const Shape& output, int ways) {
  const auto buffer = static_cast<double>(buffer_elements(transfer, input, output));
  const double others = static_cast<double>(ways - 1) / ways;
  switch (transfer.motion) {
    case Motion::all_reduce:
    case Motion::maximum: return 2 * others * buffer;
    default: return others * buffer;
  }
}

const Ints& pieces_along(const Transfer& transfer, std::size_t dim) {
  static const Ints none;
  const bool both = transfer.motion == Motion::all_to_all;
  const bool along_one = transfer.motion == Motion::slice || transfer.motion == Motion::all_gather ||
                         transfer.motion == Motion::reduce_scatter;
  if ((both || along_one) && dim == transfer.dim) return transfer.pieces;
  return both && dim == transfer.to ? transfer.to_pieces : none;
}

bool in_equal_pieces(const Transfer& transfer, std::size_t dim, std::int64_t ways) {
  const Ints& pieces = pieces_along(transfer, dim);
  return !pieces.empty() && static_cast<std::int64_t>(pieces.size()) % ways == 0 &&
         std::all_of(pieces.begin(), pieces.end(), [&](std::int64_t piece) { return piece == pieces.front(); });
}

Transfer within_part(Transfer transfer, std::size_t dim, std::int64_t ways) {
  Ints& pieces = dim == transfer.dim ? transfer.pieces : transfer.to_pieces;
  pieces.resize(pieces.size() / static_cast<std::size_t>(ways));
  if (pieces.size() == 1) pieces.clear();
  return transfer;
}

Shape result_shape(const Transfer& transfer, Shape input, int ways) {
  switch (transfer.motion) {
    case Motion::none:
    case Motion::all_reduce:
    case Motion::maximum:
    case Motion::own_numbers:
    case Motion::fill:
    case Motion::pass_round:
    case Motion::sum_round: break;
    case Motion::slice:
    case Motion::reduce_scatter: input[transfer.dim] = (input[transfer.dim] + transfer.surplus) / ways; break;
    case Motion::all_gather: input[transfer.dim] = input[transfer.dim] * ways - transfer.surplus; break;
    case Motion::all_to_all:
      input[transfer.dim] *= ways;
      input[transfer.to] /= ways;
      break;
    case Motion::halo: input[transfer.dim] += transfer.halo.before + transfer.halo.after; break;
    case Motion::halo_sum: input[transfer.dim] -= transfer.halo.before + transfer.halo.after; break;
  }
  return input;
}

}  // namespace sibyl
