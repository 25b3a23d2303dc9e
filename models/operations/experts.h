// The operations of a mixture of experts: which experts a token goes to, the way there, what experts compute, the way
// back. Included by operations.h.
//
// Shapes are static, as in GShard (Lepikhin et al., 2020): the tokens of a sample are a group, and each expert has
// `capacity` slots for the tokens of a group. Slots are handed out to the tokens' first choices before the second ones,
// each in the order of the tokens; a choice that finds its expert full is dropped and adds nothing to the token's
// result. So what a token gets depends on the other tokens of its own sample alone, whichever ranks the others are on.
#pragma once

#include <cstdint>
#include <string_view>

namespace sibyl {

// x -> y, indices: the k greatest elements (or the least) along the last axis, in order, and where they stood.
struct TopK {
  static constexpr std::string_view name = "top_k";
  std::int64_t k = 1;
  bool largest = true;
  static void fields(auto& self, auto&& visit) { visit("k", self.k), visit("largest", self.largest); }
  bool operator==(const TopK&) const = default;
};

// x[T, H], experts[T, k] -> slots[E, C, H], places[T, k]. `tokens` make a group; C is `capacity` for each of T / tokens
// groups, group after group. A place is expert * capacity + slot within the group, -1 where the choice was dropped.
// Slots that no token has are zeros.
struct Dispatch {
  static constexpr std::string_view name = "dispatch";
  std::int64_t tokens = 1, capacity = 1;
  static void fields(auto& self, auto&& visit) { visit("tokens", self.tokens), visit("capacity", self.capacity); }
  bool operator==(const Dispatch&) const = default;
};

// slots[E, C, H], places[T, k], weights[T, k] -> y[T, H]: of each token the weighted sum of what is in its places.
struct Combine {
  static constexpr std::string_view name = "combine";
  std::int64_t tokens = 1, capacity = 1;
  static void fields(auto& self, auto&& visit) { visit("tokens", self.tokens), visit("capacity", self.capacity); }
  bool operator==(const Combine&) const = default;
};

// x[E, C, K], weight, [bias[E, N]] -> y[E, C, N]: a linear layer of each expert's own. weight is [E, N, K], or [E, K,
// N] when `weight_kn`.
struct GroupedLinear {
  static constexpr std::string_view name = "grouped_linear";
  bool weight_kn = false;
  static void fields(auto& self, auto&& visit) { visit("weight_kn", self.weight_kn); }
  bool operator==(const GroupedLinear&) const = default;
};

}  // namespace sibyl
