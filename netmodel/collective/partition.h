// Who owns what, and who talks to whom: shared by the formulas, the byte counts and the communicator, so that what is
// predicted is what is sent.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "netmodel/network.h"

namespace sibyl::collective {

struct Range {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] constexpr std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Part `index` of `elements` cut into `parts`: the first elements % parts of them are longer by one.
constexpr Range part(std::int64_t elements, int parts, int index) {
  const std::int64_t base = elements / parts, longer = elements % parts;
  const std::int64_t begin = index * base + (index < longer ? index : longer);
  return {begin, begin + base + (index < longer ? 1 : 0)};
}

// What goes up or down a tree at once: of sibyl::Communicator, and NCCL's default buffer (docs/models/network.md).
constexpr std::int64_t tree_chunk_bytes = 60 << 10, gpu_tree_chunk_bytes = 4 << 20;

// Recursive doubling and halving want a power of two: of p ranks the first 2 * extra fold in pairs (an even one gives
// its vector to the odd one above it and waits), and `core` ranks go on.
struct Fold {
  int core = 1;   // the largest power of two not above p
  int extra = 0;  // p - core

  static constexpr Fold of(int size) {
    Fold fold;
    while (fold.core * 2 <= size) fold.core *= 2;
    fold.extra = size - fold.core;
    return fold;
  }
  [[nodiscard]] constexpr bool waits(int rank) const { return rank < 2 * extra && rank % 2 == 0; }
  [[nodiscard]] constexpr bool takes(int rank) const { return rank < 2 * extra && rank % 2 == 1; }
  // Number among the core ranks, and back.
  [[nodiscard]] constexpr int inner(int rank) const { return rank < 2 * extra ? rank / 2 : rank - extra; }
  [[nodiscard]] constexpr int outer(int number) const { return number < extra ? 2 * number + 1 : number + extra; }
};

// One halving step of Rabenseifner: at distance 2^step a core rank whose bit `step` is 0 keeps the lower half of its
// parts. Nearest partners come first, so the long messages stay inside the node.
struct Halving {
  Range parts;  // of `core` parts, still held

  constexpr explicit Halving(int core) : parts{0, core} {}
  constexpr Range lower() const { return {parts.begin, (parts.begin + parts.end) / 2}; }
  constexpr Range upper() const { return {(parts.begin + parts.end) / 2, parts.end}; }
  constexpr Range kept(int number, int step) const { return (number >> step) % 2 == 0 ? lower() : upper(); }
  constexpr Range given(int number, int step) const { return (number >> step) % 2 == 0 ? upper() : lower(); }
};

// The elements of a range of parts.
constexpr Range elements_of(Range parts, std::int64_t elements, int count) {
  if (parts.size() == 0) return {0, 0};
  return {part(elements, count, static_cast<int>(parts.begin)).begin,
          part(elements, count, static_cast<int>(parts.end - 1)).end};
}

// Does recursive halving come out even?
constexpr bool halves_evenly(int size) { return (size & (size - 1)) == 0; }

// Parts that a rank sends in Bruck's round at that distance (a power of two below `size`): of an all-gather as many as
// it has, or as the other still lacks; of an all-to-all those whose way has that bit.
constexpr int bruck_parts(Collective collective, int size, int distance) {
  if (collective == Collective::all_gather) return distance < size - distance ? distance : size - distance;
  const int rest = size % (2 * distance) - distance;
  return size / (2 * distance) * distance + (rest > 0 ? rest : 0);
}

// A rank's place in the in-order binary tree over ranks 0..size-1 rooted at 0: low bits are near the leaves, so
// neighbours are neighbours on the machine. -1 where there is none.
struct TreePlace {
  int parent = -1;
  std::array<int, 2> children{-1, -1};

  static TreePlace of(int size, int rank);
  // The second of two trees, in which the inner ranks of the first are leaves (but where both are, with one child in
  // each): its ranks mirrored, or, of an odd size, one further on, as NCCL has it (src/graph/trees.cc, ncclGetDtree).
  static TreePlace second(int size, int rank);
  [[nodiscard]] int child_count() const { return (children[0] >= 0 ? 1 : 0) + (children[1] >= 0 ? 1 : 0); }
};

}  // namespace sibyl::collective
