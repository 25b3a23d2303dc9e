// What a rank on processors copies to send and receive: the parts of a tensor lie apart in it, and go and come one
// after the other.
#pragma once

#include <algorithm>
#include <vector>

#include "models/operations/own_file.h"

namespace sibyl {

// Not part of a model: the copies of one exchange between `ways` ranks, in which nothing is sent. x is taken apart
// along `apart` into the ranks' parts, each of which has its share of every piece (of one, unless they are told), or
// parts are put together along `together`; `none`: they are not. All parts put together have x among them, which is
// copied there; of all that x was taken apart into, one is copied out.
struct Packing {
  static constexpr std::string_view name = "packing";
  static constexpr bool own_file = true;
  static constexpr std::int64_t none = -1;
  std::int64_t ways = 2, apart = none, together = none;
  std::vector<std::int64_t> apart_pieces = {}, together_pieces = {};
  static void fields(auto& self, auto&& visit) {
    visit("ways", self.ways), visit("apart", self.apart), visit("together", self.together);
    visit("apart_pieces", self.apart_pieces), visit("together_pieces", self.together_pieces);
  }
  bool operator==(const Packing&) const = default;

  [[nodiscard]] TrainingRule training(const auto& c) const {
    const double x = c.in(0), y = c.out(), part = apart != none && together != none ? 0 : std::min(x, y);
    const double bytes = ((apart != none ? x : 0) + (together != none ? y : 0) + part) * c.element();
    TrainingRule r;
    r.forward = rules::work(0, bytes, bytes);
    return r;
  }

  // What other ranks' parts would be is read from x: as near as what has just arrived.
  [[nodiscard]] auto run(const auto& in) const {
    const auto x = in[0].detach();
    Shape part(x.sizes().begin(), x.sizes().end());
    if (apart != none) part[static_cast<std::size_t>(apart)] /= ways;
    Shape rows = part;
    rows.insert(rows.begin(), ways);
    const auto parts = x.new_empty(rows);
    if (apart == none) parts[0].copy_(x);
    for (std::int64_t i = 0; apart != none && i < ways; ++i)
      each_piece(apart_pieces, part[static_cast<std::size_t>(apart)] * ways, i, [&](auto whole, auto own, auto length) {
        parts[i].narrow(apart, own, length).copy_(x.narrow(apart, whole, length));
      });
    if (together == none) return parts[0].clone();
    Shape shape = part;
    shape[static_cast<std::size_t>(together)] *= ways;
    auto y = x.new_empty(shape);
    for (std::int64_t i = 0; i < ways; ++i)
      each_piece(together_pieces, shape[static_cast<std::size_t>(together)], i, [&](auto whole, auto own, auto length) {
        const auto from = apart == none && i > 0 ? x : parts[i];
        y.narrow(together, whole, length).copy_(from.narrow(together, own, length));
      });
    return y;
  }

 private:
  // visit(where in the whole, where in part i, length), for each piece.
  void each_piece(const std::vector<std::int64_t>& pieces, std::int64_t extent, std::int64_t i, auto&& visit) const {
    std::int64_t whole = 0, own = 0;
    for (const std::int64_t piece : pieces.empty() ? std::vector<std::int64_t>{extent} : pieces) {
      visit(whole + i * (piece / ways), own, piece / ways);
      whole += piece, own += piece / ways;
    }
  }
};

// Not part of a model: the same of an exchange of halos, x being [outer, rows, inner] of an image cut into rows. x gets
// rows of its neighbours `before` and `after` its own; or, where `sums`, x has had such rows and what was computed
// there is given home and added to. A rank has one neighbour, and beyond its other rim is nobody, or is in the
// `middle`.
struct HaloPacking {
  static constexpr std::string_view name = "halo_packing";
  static constexpr bool own_file = true;
  std::int64_t before = 0, after = 0;
  bool sums = false, middle = false;
  static void fields(auto& self, auto&& visit) {
    visit("before", self.before), visit("after", self.after), visit("sums", self.sums), visit("middle", self.middle);
  }
  bool operator==(const HaloPacking&) const = default;

  // Own rows, and twice the slabs: into a message, and out of one.
  [[nodiscard]] TrainingRule training(const auto& c) const {
    const double x = c.in(0), y = c.out(), slabs = x < y ? y - x : x - y;
    const double bytes = (std::min(x, y) + 2 * slabs) * c.element();
    TrainingRule r;
    r.forward = rules::work(sums ? slabs : 0, bytes, bytes);
    return r;
  }

  // Of two slabs that differ a rank at the rim gives and gets the larger. What arrives is as near as what was given.
  [[nodiscard]] auto run(const auto& in) const {
    const auto x = in[0].detach();
    const std::int64_t own = x.size(1) - (sums ? before + after : 0);
    const std::int64_t large = std::max(before, after), small = std::min(before, after);
    const bool other = middle && small > 0;
    const auto slab = x.narrow(1, 0, large).contiguous();
    const auto second = other ? x.narrow(1, x.size(1) - small, small).contiguous() : slab;
    if (sums) {
      auto y = x.narrow(1, before, own).clone();
      y.narrow(1, 0, large).add_(slab);
      if (other) y.narrow(1, own - small, small).add_(second);
      return y;
    }
    auto y = x.new_empty({x.size(0), own + before + after, x.size(2)});
    y.narrow(1, before, own).copy_(x);
    const std::int64_t behind = before + own, at = before == large ? 0 : behind;
    y.narrow(1, at, large).copy_(slab);
    if (small == 0) return y;
    auto rest = y.narrow(1, behind - at, small);
    if (middle)
      rest.copy_(second);
    else
      rest.zero_();
    return y;
  }
};

}  // namespace sibyl
