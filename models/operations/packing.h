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

}  // namespace sibyl
